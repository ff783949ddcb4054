"""From columns as read to a `Split`: every value checked, every complaint with its line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compress.errors import CompressError
from compress.spec.base import NOT_UNICODE, is_unicode
from compress.spec.task import TaskSpec

from .data import Split
from .tables import brief, refuse

LARGEST_SCORE = float(np.finfo(np.float32).max)
MOST_UNLISTED_LABELS = 100  # more distinct values than this are rather scores or ids than classes


@dataclass(frozen=True)
class Rows:
    """One split as read, unchecked.

    `aliases` maps labels as the file writes them to the task's names; `declared` are names in id order that the
    data set itself gives.
    """

    place: str
    unit: str
    numbers: Sequence[int]
    texts: tuple[list[Any], ...]
    labels: list[Any]
    aliases: Mapping[str, str] | None = None
    declared: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def names(self) -> list[str]:
        """Labels as strings, by the task's names where the file has its own."""
        written = [label_text(value) for value in self.labels]
        aliases = self.aliases
        return written if aliases is None else [aliases.get(name, name) for name in written]


def label_text(value: Any) -> str:
    """How a label is compared: its text; whole floats as integers (Parquet turns 1 into 1.0 beside a null)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def label_names(spec: TaskSpec, train: Rows) -> tuple[str, ...]:
    """The task's class names in id order: `labels` of the spec, or the sorted values of the training column."""
    if spec.kind == "regression":
        return ()
    if spec.labels is not None:
        names = spec.labels
    elif train.declared is not None:
        names = train.declared
    else:
        found = {name for name, value in zip(train.names(), train.labels, strict=True) if value is not None}
        if len(found) > MOST_UNLISTED_LABELS:
            raise CompressError(
                f"{train.place}: column {spec.label!r} has {len(found):,} different values; "
                "list them under `labels` if they are classes, or set `kind: regression`"
            )
        names = tuple(sorted(found, key=_natural))
    if not all(is_unicode(name) for name in names):
        raise CompressError(f"{train.place}: column {spec.label!r}: {NOT_UNICODE}")
    _check_positive(spec, names)
    return names


def _natural(name: str) -> tuple[bool, int, str]:
    whole = name.removeprefix("-").isdecimal()
    return (not whole, int(name) if whole else 0, name)


def _check_positive(spec: TaskSpec, names: tuple[str, ...]) -> None:
    if spec.positive is not None and spec.positive not in names:
        raise CompressError(f"task {spec.name}: `positive` is {spec.positive!r}, which is not among {list(names)}")
    if "f1" in spec.metrics and spec.positive is None and len(names) > 2:
        raise CompressError(
            f"task {spec.name}: metric `f1` with {len(names)} labels needs `positive` (or take `f1_macro`)"
        )


def to_split(spec: TaskSpec, rows: Rows, names: tuple[str, ...], *, training: bool) -> Split:
    """The checked split. Raises `CompressError` naming the place and the first offending lines."""
    if not len(rows):
        raise CompressError(f"{rows.place}: no examples; expected at least one row after the header")
    _check_texts(spec, rows)
    labels = _scores(rows) if spec.kind == "regression" else _class_ids(rows, names)
    if training and len(np.unique(labels)) < 2:
        only = names[labels[0]] if names else float(labels[0])
        raise CompressError(
            f"{rows.place}: all {len(rows):,} examples have the label {only!r}; training needs at least two"
        )
    return Split(tuple(rows.texts), labels)


def _check_texts(spec: TaskSpec, rows: Rows) -> None:
    for name, column in zip(spec.text, rows.texts, strict=True):
        wrong = [(n, v) for n, v in zip(rows.numbers, column, strict=True) if not isinstance(v, str)]
        refuse(rows.place, rows.unit, [(n, f"{name}: expected text, found {brief(v)}") for n, v in wrong])
        halves = [n for n, v in zip(rows.numbers, column, strict=True) if not is_unicode(v)]
        refuse(rows.place, rows.unit, [(n, f"{name}: {NOT_UNICODE}") for n in halves])
        if not any(text.strip() for text in column):
            raise CompressError(
                f"{rows.place}: column {name!r} is empty in all {len(rows):,} rows; is it the right one?"
            )


def _class_ids(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    ids = {name: index for index, name in enumerate(names)}
    found = rows.names()
    wrong = [(n, name) for n, name in zip(rows.numbers, found, strict=True) if name not in ids]
    refuse(rows.place, rows.unit, [(n, _unknown_label(name, names)) for n, name in wrong])
    return np.array([ids[name] for name in found], dtype=np.int64)


def _unknown_label(name: str, names: tuple[str, ...]) -> str:
    hidden = " (-1 marks hidden labels: this split cannot be scored)" if name == "-1" else ""
    known = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return f"unknown label {brief(name)}{hidden}; known: {known}"


def _scores(rows: Rows) -> np.ndarray:
    scores, problems = np.zeros(len(rows), dtype=np.float32), []
    for index, (number, value) in enumerate(zip(rows.numbers, rows.labels, strict=True)):
        score = _number(value)
        if math.isfinite(score) and abs(score) < LARGEST_SCORE:
            scores[index] = score
        else:
            problems.append((number, f"expected a finite score, found {brief(value)}"))
    refuse(rows.place, rows.unit, problems)
    return scores


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
