"""Lists stored as text in CSV or TSV: parse JSON, and recognise other notations."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import brief
from ...files.tabular import NO_COMMA
from .columns import Rows
from .tables import refuse


def parsed_lists(rows: Rows, column: str, label: str) -> Rows:
    """Return `rows` of tags or spans, whose labels are all text, with labels parsed; for lists of tags, texts are parsed to lists of words
    too. Raises `CompressError`, with line numbers, for texts that are not JSON lists."""
    labels = _lists(rows, rows.labels, label)
    if not any(isinstance(part, str | int) for row_labels in labels for part in row_labels):
        return replace(rows, labels=labels)
    return replace(rows, texts=(_lists(rows, rows.texts[0], column),), labels=labels)


def are_lists(texts: Sequence[Any]) -> bool:
    """Whether all are texts in brackets, in any notation."""
    return bool(texts) and all(isinstance(text, str) and text.strip()[:1] == "[" for text in texts)


def are_lists_of_spans(texts: Sequence[Any]) -> bool:
    """Whether all are texts of lists, at least one of them of lists or objects."""
    return are_lists(texts) and any(text.strip()[1:].lstrip()[:1] in ("{", "[") for text in texts)


def is_foreign_list(text: str) -> bool:
    """Whether it is a list of texts in Python's or NumPy's notation."""
    try:
        literal = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return isinstance(literal, list) and bool(literal) and all(isinstance(part, str) for part in literal)


def _lists(rows: Rows, values: Sequence[Any], name: str) -> list[list[Any]]:
    lists = [json_list(value) for value in values]
    refuse(rows.place, rows.unit, [
        (number, f"{name}: {part}") for number, part in zip(rows.numbers, lists, strict=True) if isinstance(part, str)
    ])  # fmt: skip
    return [part for part in lists if isinstance(part, list)]


def json_list(value: Any) -> list[Any] | str:
    """Return the list, or what is wrong with the text."""
    if isinstance(value, list):
        return value
    try:
        document = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        document = None
    if isinstance(document, list):
        return document
    text = str(value).strip()
    form = ""
    if text.startswith("["):
        form = (
            ", a NumPy array as text"
            if NO_COMMA.search(text)
            else ", which is not JSON; Python lists have single quotes"
        )
        form += ": write it with json.dumps"
    return f'expected a list in JSON, such as ["a", "b"], found {brief(value)}{form}'
