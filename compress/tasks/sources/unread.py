"""Detect a text column that a task of single texts does not read: maybe the second text of pairs."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from ...spec.task import TaskSpec
from ..reading.tables import Table

_SAMPLE = 500  # rows
_WORDS = 3.0  # per text, on average; names, dates and codes have fewer
_REPEATED = 4  # most repetitions, on average: a premise has several hypotheses, a class many more examples


def unread_texts(table: Table, spec: TaskSpec) -> str | None:
    """Return the first column that looks like texts and is not named in the task; None if the task reads pairs."""
    if len(spec.text) > 1:
        return None
    named = (*spec.text, *spec.label_columns)
    return next((name for name, values in table.columns.items() if name not in named and _are_texts(values)), None)


def unread_note(place: str, name: str, text: str) -> str:
    """Return a hint that the column `name` of the file `place` may belong to the column `text`."""
    return (
        f"{place}: the texts in column {name!r} are not read; if they belong to those in {text!r}, give "
        f"--pair {name}, or name both under `text` in the task file"
    )


def _are_texts(values: list[Any]) -> bool:
    sample = values[:_SAMPLE]
    if not sample or not all(isinstance(value, str) for value in sample):
        return False
    return fmean(len(value.split()) for value in sample) >= _WORDS and len(set(sample)) * _REPEATED >= len(sample)
