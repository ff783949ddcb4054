"""Notes on labels that are probably not as they were meant to be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compress.spec.kinds import KINDS
from compress.spec.task import TaskSpec

from .data import Split
from .kinds import TASK_KINDS
from .number_texts import is_number
from .tables import SHOWN


def absent_labels(spec: TaskSpec, train: Split, names: tuple[str, ...]) -> list[str]:
    present = TASK_KINDS[spec.kind].present(train.labels)
    absent = [name for index, name in enumerate(names) if index not in present]
    return [f"train has no example of the label {name!r}" for name in absent]


def alike_labels(spec: TaskSpec, train: Split, names: tuple[str, ...]) -> list[str]:
    """Return notes on labels of texts that differ only in case, or are the same number, with their counts in train."""
    if KINDS[spec.kind].unit != "text" or len(names) < 2:
        return []
    labels = train.labels
    counts = labels.sum(axis=0) if KINDS[spec.kind].many else np.bincount(labels, minlength=len(names))
    groups: dict[str | float, list[str]] = {}
    for name, count in zip(names, counts.tolist(), strict=True):
        key = float(name) if is_number(name) else name.casefold()
        groups.setdefault(key, []).append(f"{name!r} ({count:,})")
    notes = []
    for kind, words in ((str, "differ only in case"), (float, "are the same number")):
        alike = [" and ".join(group) for key, group in groups.items() if len(group) > 1 and isinstance(key, kind)]
        if alike:
            rest = f"; {len(alike):,} such groups in all" if len(alike) > SHOWN else ""
            notes.append(f"labels of train {words}: {'; '.join(alike[:SHOWN])}{rest}")
    return notes


def single_labels(spec: TaskSpec, names: tuple[str, ...], reported: Mapping[str, Split]) -> list[str]:
    """Return a note for each reported split of a classification task whose examples all have one label."""
    if spec.kind != "classification":
        return []
    distinct_labels = {name: np.unique(split.labels) for name, split in reported.items()}
    return [
        f"{name} has one label alone, {names[labels[0]]!r}: its scores cannot compare models"
        for name, labels in distinct_labels.items()
        if len(labels) == 1
    ]
