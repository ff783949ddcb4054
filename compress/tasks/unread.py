"""A column of texts that a task of single texts leaves unread: maybe the second one of pairs."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from compress.spec.task import TaskSpec

from .tables import Table

_SAMPLE = 500  # rows
_WORDS = 3.0  # of a text, on average; names, dates and codes have fewer
_REPEATED = 4  # times at most, on average: a premise has several hypotheses, a class has more examples


def unread_texts(table: Table, spec: TaskSpec) -> str | None:
    """The first column that looks like texts and that the task does not name; None where it reads pairs."""
    if len(spec.text) > 1:
        return None
    named = (*spec.text, *spec.label_columns)
    return next((name for name, values in table.columns.items() if name not in named and _are_texts(values)), None)


def unread_note(place: str, name: str, text: str) -> str:
    """What may be meant: the column `name` of the file `place` beside the column `text`."""
    return (
        f"{place}: nothing reads the texts in column {name!r}; if they belong to those in {text!r}, say --pair {name}, or "
        "name both under `text` in the task file"
    )


def _are_texts(values: list[Any]) -> bool:
    sample = values[:_SAMPLE]
    if not sample or not all(isinstance(value, str) for value in sample):
        return False
    return fmean(len(value.split()) for value in sample) >= _WORDS and len(set(sample)) * _REPEATED >= len(sample)
