"""Refuse files that would be read as classes of texts, and are of another kind in a form that cannot be read."""

from __future__ import annotations

from typing import Any

from ...errors import CompressError, brief
from ...files.tabular import flag, is_number
from ...metrics.tags import OUTSIDE
from ..reading.answers import CONTEXT, FORMS, QUESTION
from ..reading.tables import Table
from ..reading.tag_schemes import is_tag
from .files import OwnFiles

_POSITIONS = ("start", "answer_start")  # usual names of columns
_INSIDE = "IEL"  # marks of an entity's later words
_TAGGED = "--kind classification, if they are classes of whole texts"


def check_classes(table: Table, own: OwnFiles) -> None:
    """Raise `CompressError` if labels, whose kind the user leaves open, are tags of words, or answers without a position."""
    if own.kind is not None or not table.columns.get(own.label):
        return
    labels = table.column(own.label)
    if own.pair is None:
        _check_no_tags(table, own, labels)
    elif own.texts == (QUESTION, CONTEXT):
        _check_no_answers(table, own, labels)


def _check_no_tags(table: Table, own: OwnFiles, labels: list[Any]) -> None:
    lists = [str(value).split() for value in labels]
    tags = {tag for row in lists for tag in row}
    # Classes may look like tags of entities, as S-Class and E-Class; some word of a text is outside of all entities.
    if not all(lists) or not all(map(is_tag, tags)) or OUTSIDE not in tags or len(tags) == 1:
        return
    example = brief(max(map(str, labels), key=len))
    if any(len(row) > 1 for row in lists):
        raise CompressError(
            f"{table.place}: column {own.label!r} has the tags of several words in one text, such as {example}; write words and tags as "
            f"lists, in a .jsonl, or one word per line, in a .conll; {_TAGGED}"
        )
    words = [str(text) for text in table.column(own.text)]
    # Words of a running text recur, as articles and full stops do; words of a list are examples of their own, of one class each.
    listed = len(set(words)) == len(words) and not any(tag[0] in _INSIDE for tag in tags)
    if all(len(word.split()) < 2 for word in words) and not listed:
        raise CompressError(
            f"{table.place}: column {own.label!r} has tags of single words, such as {example}; write one word and its tag per line, with a "
            f"blank line between texts, in a .conll, or lists of words and tags, in a .jsonl; {_TAGGED}"
        )


def _check_no_answers(table: Table, own: OwnFiles, labels: list[Any]) -> None:
    answers = [value if isinstance(value, list) else [value] for value in labels]
    contexts = table.column(CONTEXT)
    are_excerpts = all(
        isinstance(context, str)
        and all(isinstance(answer, str) and answer.strip() and answer in context for answer in row)
        for context, row in zip(contexts, answers, strict=True)
    )
    are_flags = all(flag(value) is not None for value in labels)  # 0 and 1, which all contexts may have
    are_positions = own.label.lower() in _POSITIONS and all(is_number(str(value)) for value in labels)
    if (are_excerpts and any(answers) and not are_flags) or are_positions:
        raise CompressError(
            f"{table.place}: column {own.label!r} has answers without positions or texts, such as {brief(labels[0])}; to find answers "
            f"in contexts, write them as {FORMS}, in a .jsonl; --kind classification or --kind multilabel, if they are classes"
        )
