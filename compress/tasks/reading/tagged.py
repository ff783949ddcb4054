"""Convert word labels, in any form that files use, to texts as strings, and the label and position of each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import brief
from ...files.tabular import label_text
from ...metrics.tags import OUTSIDE, are_entities
from ...runtime.words import joined_spans
from ...spec.task import TaskSpec
from .columns import Rows
from .json_lists import parsed_lists
from .spans import spans_as_tags
from .tables import refuse
from .tag_schemes import are_tags_of_entities, is_tag, to_iob2, types_of

Word = tuple[str, int, int]  # label, start and end in characters


def parse_tagged(spec: TaskSpec, rows: Rows) -> Rows:
    """Return `rows` with texts as strings and labels as lists of `Word`: from lists of words and tags, joined by single spaces, or from
    texts and character spans; lists may be JSON text. Raises `CompressError`, with line numbers, for anything else."""
    return tagged_rows(rows, spec.text[0], str(spec.label), spec.labels or ())


def tagged_rows(rows: Rows, column: str, label: str, names: tuple[str, ...]) -> Rows:
    """Like `parse_tagged`, with the names of the columns; `names`: of the labels, if known."""
    if rows.labels and all(isinstance(value, str) for value in rows.labels):
        rows = parsed_lists(rows, column, label)
    (texts,) = rows.texts
    if any(isinstance(text, list | tuple) for text in texts):
        return _from_words(rows, column, label, names)
    strings, labels, notes = spans_as_tags(rows, column, label)
    declared = None if rows.declared is None else _both_marks(set(rows.declared) - {OUTSIDE})
    return replace(rows, texts=(strings,), labels=labels, declared=declared, notes=(*rows.notes, *notes))


def _both_marks(types: set[str]) -> tuple[str, ...]:
    """Return the labels of words in entities of these types."""
    return (OUTSIDE, *(f"{mark}-{name}" for name in sorted(types) for mark in "BI"))


def _from_words(rows: Rows, column: str, label: str, names: tuple[str, ...]) -> Rows:
    texts = enumerate(zip(rows.texts[0], rows.labels, strict=True))
    problems = [_row_problem(rows, row, words, tags, column, label) for row, (words, tags) in texts]
    refuse(rows.place, rows.unit, [problem for problem in problems if problem is not None])
    tags = [[_tag_name(tag, names) for tag in row_tags] for row_tags in rows.labels]
    tags, declared, notes = _in_scheme(rows, tags, names)
    numbered = all(isinstance(tag, int) for row_tags in rows.labels for tag in row_tags)
    if numbered and not declared and all(name.isdecimal() for name in names):
        notes = [
            *notes,
            "tags are numbers and stay numbers; name them with `labels` in the task file, in the order of their "
            "numbers",
        ]
    words = list(map(_place_words, rows.texts[0], tags))
    texts = [" ".join(row_words) for row_words in rows.texts[0]]
    return replace(rows, texts=(texts,), labels=words, declared=declared, notes=(*rows.notes, *notes))


def _row_problem(rows: Rows, row: int, words: Any, tags: Any, column: str, label: str) -> tuple[int | str, str] | None:
    """Return what is wrong with one text's words or tags, for `refuse`."""
    number = rows.numbers[row]
    if not isinstance(words, list | tuple):
        return number, f"{column}: expected a list of words, found {brief(words)}"
    if not isinstance(tags, list | tuple):
        return number, f"{label}: expected a list of tags, found {brief(tags)}"
    for index, word in enumerate(words):
        if not isinstance(word, str) or not word:
            return rows.of_word(row, index, f"expected text, found {brief(word)}", column)
    if len(words) != len(tags):
        return number, f"expected a tag for each of {len(words):,} words, found {len(tags):,}"
    for index, tag in enumerate(tags):
        if isinstance(tag, bool) or not isinstance(tag, str | int) or not str(tag).strip():
            return rows.of_word(row, index, f"expected a tag, found {brief(tag)}", label)
    return None


def _tag_name(tag: str | int, names: tuple[str, ...]) -> str:
    """Return a tag's name, also if it is the number of one of the task's `labels`."""
    if isinstance(tag, int) and str(tag) not in names and 0 <= tag < len(names):
        return names[tag]
    return label_text(tag)


def _in_scheme(
    rows: Rows, tags: list[list[str]], names: tuple[str, ...]
) -> tuple[list[list[str]], tuple[str, ...] | None, list[str]]:
    """Return tags, the names that the data set declares, and notes; entity tags are converted to IOB2."""
    declared = rows.declared
    entities = (
        are_entities(names) if names else are_tags_of_entities({*(declared or ()), *(t for f in tags for t in f)})
    )
    if not entities:
        return tags, declared, _beside_marks(tags)
    refuse(rows.place, rows.unit, [
        rows.of_word(row, index, f"expected a tag such as O, B-PER or I-PER, found {brief(tag)}")
        for row, row_tags in enumerate(tags)
        for index, tag in enumerate(row_tags)
        if not is_tag(tag)
    ])  # fmt: skip
    if declared is not None:
        declared = _both_marks(types_of(declared))
    converted, notes = to_iob2(tags)
    return converted, declared, notes


def _beside_marks(tags: list[list[str]]) -> list[str]:
    """Return a note if tags may be meant for entities but are not: they are mixed with others, or none has a mark."""
    different = {tag for row_tags in tags for tag in row_tags}
    marked = sorted(tag for tag in different if is_tag(tag) and tag != OUTSIDE)
    other = sorted(different - set(marked) - {OUTSIDE})
    if marked and other:
        return [
            f"tags such as {marked[0]!r} occur beside {other[0]!r}, and none is O: each is a label of its own, "
            "and none is an entity"
        ]
    if OUTSIDE in different and other:
        return [
            f"tags such as {other[0]!r} have no B- or I-, so each is a label of single words, and none is an "
            f"entity: write B-{other[0]} and I-{other[0]} for entity F1"
        ]
    return []


def _place_words(words: Sequence[str], tags: Sequence[str]) -> list[Word]:
    """Return words, joined by single spaces, with their tags and positions."""
    return [(tag, start, end) for tag, (start, end) in zip(tags, joined_spans(words).tolist(), strict=True)]
