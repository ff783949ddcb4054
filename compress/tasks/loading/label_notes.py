"""Notes on labels that are probably not as they were meant to be."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation

import numpy as np

from ...files.tabular import is_number, list_names
from ...metrics.tags import ENTITY_METRICS, OUTSIDE
from ...results import ONE_TUNING_LABEL
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ..data import Split
from ..kinds import TASK_KINDS
from ..reading.tables import SHOWN

_TRUTH = {"false": Decimal(0), "true": Decimal(1)}  # some tools write these, others the numbers


def absent_labels(spec: TaskSpec, train: Split, names: tuple[str, ...]) -> list[str]:
    present = TASK_KINDS[spec.kind].labels.present(train.labels)
    absent = [name for index, name in enumerate(names) if index not in present]
    return [f"train has no example of the label {name!r}" for name in absent]


def alike_labels(spec: TaskSpec, train: Split, names: tuple[str, ...]) -> list[str]:
    """Return notes on labels of texts that differ only in case or encoding, or are the same number, with their counts in train."""
    if KINDS[spec.kind].unit != "text" or len(names) < 2:
        return []
    labels = train.labels
    counts = labels.sum(axis=0) if KINDS[spec.kind].many else np.bincount(labels, minlength=len(names))
    groups: dict[str | Decimal, dict[str, int]] = {}
    for name, count in zip(names, counts.tolist(), strict=True):
        groups.setdefault(_meaning(name), {})[name] = count
    likenesses: dict[str, list[str]] = {}
    for group in groups.values():
        if len(group) > 1:
            words, shown = _likeness(list(group))
            likenesses.setdefault(words, []).append(
                " and ".join(f"{shown(name)} ({count:,})" for name, count in group.items())
            )
    return [
        f"labels of train {words}: {'; '.join(alike[:SHOWN])}"
        + (f"; {len(alike):,} such groups in all" if len(alike) > SHOWN else "")
        for words, alike in sorted(likenesses.items())
    ]


def _meaning(name: str) -> str | Decimal:
    """Return what is equal for labels that probably mean the same: the number, or the name in one case and one encoding."""
    if (folded := name.casefold()) in _TRUTH:
        return _TRUTH[folded]
    with suppress(InvalidOperation):  # an exponent beyond all reason
        if is_number(name):
            return Decimal(name)
    return unicodedata.normalize("NFC", name).casefold()


def _likeness(names: Sequence[str]) -> tuple[str, Callable[[str], str]]:
    """Return how labels of one meaning differ, in words, and how to show them."""
    truths = [name.casefold() in _TRUTH for name in names]
    if any(truths) and not all(truths):
        return "may mean the same", repr
    if isinstance(_meaning(names[0]), Decimal) and not any(truths):
        return "are the same number", repr
    composed = [unicodedata.normalize("NFC", name) for name in names]
    if composed == list(names):
        return "differ only in case", repr
    if len(set(composed)) == 1:
        return "look alike, and their characters are encoded in different ways", ascii
    return "differ only in case and in how their characters are encoded", ascii


def single_labels(spec: TaskSpec, names: tuple[str, ...], reported: Mapping[str, Split]) -> list[str]:
    """Return a note for each reported split on which scores tell nothing: all its texts have one label, or the same ones, or every query
    has passages of one relevance alone."""
    kind, labels = KINDS[spec.kind], TASK_KINDS[spec.kind].labels
    if kind.unit != "text" or not (kind.named_labels or kind.grouped):
        return []
    alike = [(name, split.labels) for name, split in reported.items() if not labels.vary(split.labels)]
    if kind.grouped:
        problems = [f"{name} has no query with passages of different relevance" for name, _ in alike]
    elif kind.many:
        problems = [f"{name} has the same labels in all texts, {labels.format(gold[0], names)}" for name, gold in alike]
    else:
        problems = [f"{name} has one label alone, {names[gold[0]]!r}" for name, gold in alike]
    return [f"{problem}: its scores cannot compare models" for problem in problems]


def tuning_labels(spec: TaskSpec, names: tuple[str, ...], train: Split, tuning: Split, *, own: bool) -> list[str]:
    """Return a note if the tuning split has one label alone, or lacks labels of train: no checkpoint is chosen by those. `own`: the user
    provides it."""
    present_in = TASK_KINDS[spec.kind].labels.present
    if not KINDS[spec.kind].named_labels:
        return []
    present, known = present_in(tuning.labels), present_in(train.labels)
    fraction = "" if own else ", or raise its `tuning_fraction`"
    if len(present) == 1 and not KINDS[spec.kind].many:
        only = names[present.pop()]
        scores = (
            "every model scores 0 on it"
            if _zero_metrics(only, positive=spec.positive or names[-1]).issuperset(spec.metrics)
            else "a model that gives no other is always right"
        )
        return [
            f"{ONE_TUNING_LABEL}, {only!r}: {scores}, so it chooses no checkpoint; name a file with other labels, too, "
            f"with --tuning, or as `tuning` in the task file{fraction}"
        ]
    missing = [name for index, name in enumerate(names) if index in known - present]
    if not missing:
        return []
    return [
        f"the tuning split has no example of {list_names(missing, SHOWN)}, which train has: no checkpoint is chosen by how well models "
        f"know {'it' if len(missing) == 1 else 'them'}; name a file with all labels with --tuning, or as `tuning` in the task file"
        f"{fraction}"
    ]


def _zero_metrics(only: str, *, positive: str) -> set[str]:
    """Return the metrics by which every model scores 0 if `only` is the label of all examples: Matthews, F1 of another class, and F1 of
    entities if there are none."""
    zero = {"matthews"}
    if only != positive:
        zero.add("f1")
    if only == OUTSIDE:
        zero.update(ENTITY_METRICS)
    return zero
