"""Convert questions with endings, in any form that files and data sets use, to consecutive pairs of a context and an ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import brief
from ...files.tabular import label_text
from ...spec.task import TaskSpec
from .columns import Rows
from .tables import refuse

FORMS = '["an ending", "another"] or {"label": ["A", "B"], "text": ["an ending", "another"]}'
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_DIGITS = 20  # of an index

Ending = tuple[str, str]  # (name that a label may use, or "", text)


def pair_endings(spec: TaskSpec, rows: Rows) -> Rows:
    """Return `rows` with a row for each ending: texts are contexts and endings, labels (1 for the right one, else 0; number of the
    question, from 0). Raises `CompressError`, with line numbers, for invalid questions."""
    contexts, endings, labels, numbers, problems = [], [], [], [], []
    several = 0
    for question, (number, *texts, value, label) in enumerate(zip(rows.numbers, *rows.texts, rows.labels, strict=True)):
        question_endings = endings_of(value, spec.text[-1])
        if isinstance(question_endings, str):
            problems.append((number, question_endings))
            continue
        right = ending_index(label, question_endings, str(spec.label))
        wrong = _no_text(texts, spec.text) if not isinstance(right, str) else right
        if wrong is not None:
            problems.append((number, wrong))
            continue
        several += len({text for _, text in question_endings}) < len(question_endings)
        contexts += [texts[0]] * len(question_endings)
        endings += [" ".join([*texts[1:], text]) for _, text in question_endings]
        labels += [(int(index == right), question) for index in range(len(question_endings))]
        numbers += [number] * len(question_endings)
    refuse(rows.place, rows.unit, problems)
    notes = [f"{len(rows):,} questions with {len(labels):,} endings"]
    if several:
        notes.append(
            f"{several:,} of {len(rows):,} questions have an ending twice: it cannot be told which of the two is right"
        )
    return replace(rows, texts=(contexts, endings), labels=labels, numbers=numbers, notes=(*rows.notes, *notes))


def endings_of(value: Any, column: str) -> list[Ending] | str:
    """Return the endings of a question, each with its name, or "" if it has none; or what is wrong with them."""
    named = isinstance(value, dict)
    texts = value.get("text") if isinstance(value, dict) else value
    if not isinstance(texts, list | tuple):
        hint = "; a .csv or .tsv has a column for each ending" if isinstance(value, str) else ""
        return f"{column}: expected a list of endings, such as {FORMS}, found {brief(value)}{hint}"
    labels = (value.get("label") or ()) if named else ()
    if not isinstance(labels, list | tuple):
        return f"{column}: expected a list of the endings' labels, found {brief(labels)}"
    names = [label_text(name) for name in labels] if named else [""] * len(texts)
    wrong = next((text for text in texts if not isinstance(text, str) or not text.strip()), None)
    if wrong is not None or None in texts:
        return f"{column}: expected texts, found {brief(wrong)} among the endings"
    if len(texts) < 2:
        return f"{column}: expected two endings or more to choose among, found {len(texts)}"
    if len(names) != len(texts):
        return f"{column}: expected as many labels as endings, found {len(names)} and {len(texts)}"
    return list(zip(names, texts, strict=True))


def ending_index(label: Any, endings: Sequence[Ending], column: str) -> int | str:
    """Return the index of the right ending, from 0, given its name, index, text or letter; or what is wrong with the label."""
    last, written = len(endings) - 1, label_text(label)
    named = [index for index, (name, _) in enumerate(endings) if name and name == written]
    if len(named) > 1:
        return f"{column}: {brief(label)} is the label of two endings; expected a label that only one has"
    if named:
        return named[0]
    names = [name for name, _ in endings if name]
    if any(_reads_as(name, written) for name in names):
        return f"{column}: expected one of the endings' own labels, {', '.join(names)}, found {brief(label)}"
    if isinstance(label, int | float) and not isinstance(label, bool):
        return int(written) if _is_index(written, last) else _index_problem(column, label, last)
    if not isinstance(label, str):
        return f"{column}: expected the place of the right ending, its letter or its text, found {brief(label)}"
    matches: set[int] = {index for index, (_, text) in enumerate(endings) if text.strip() == written}
    matches = {min(matches)} if matches else matches
    if _is_index(written, last):
        matches.add(int(written))
    if len(written) == 1 and (letter := _LETTERS.find(written.upper())) in range(len(endings)):
        matches.add(letter)
    if len(matches) == 1:
        return matches.pop()
    if matches:
        return (
            f"{column}: {brief(label)} is the text of one ending and the place or the letter of another; expected "
            "a value that fits only one"
        )
    if written.removeprefix("-").isdecimal():
        return _index_problem(column, label, last)
    return (
        f"{column}: expected the place of the right ending, 0 to {last}, its letter or its text, found {brief(label)}"
    )


def _reads_as(name: str, label: str) -> bool:
    """Whether both are numbers or both letters; a label is then not an index if endings have such names."""
    letters = len(name) == len(label) == 1 and name.isalpha() and label.isalpha()
    return letters or (name.isdecimal() and label.isdecimal())


def _is_index(written: str, last: int) -> bool:
    """Whether it is a number from 0 to `last`; false for more digits than Python parses."""
    return written.isdecimal() and len(written) <= _MOST_DIGITS and int(written) <= last


def _index_problem(column: str, label: Any, last: int) -> str:
    """Return what is wrong with a number that is not the index of an ending."""
    if label_text(label) == "-1":
        return f"{column}: found -1, which marks hidden labels: this split cannot be scored"
    return f"{column}: expected the place of the right ending, from 0 to {last}, found {brief(label)}"


def _no_text(texts: Sequence[Any], names: Sequence[str]) -> str | None:
    wrong = [(name, text) for name, text in zip(names, texts, strict=False) if not isinstance(text, str)]
    return f"{wrong[0][0]}: expected text, found {brief(wrong[0][1])}" if wrong else None
