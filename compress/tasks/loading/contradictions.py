"""A note on examples of train that have the same text and different labels."""

from __future__ import annotations

import numpy as np

from ...errors import brief
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ..data import Split
from ..reading.columns import Rows
from ..reading.tables import format_count
from ..sources.glue import is_glue


def contradicting_labels(spec: TaskSpec, rows: Rows, train: Split, names: tuple[str, ...]) -> list[str]:
    """Return a note on texts with several labels, and two such rows, for data of the user's own whose labels have names. Texts are the same
    if no character differs; empty ones do not count. `train`: all of `rows`."""
    if is_glue(spec) or spec.synthetic is not None or not KINDS[spec.kind].named_labels:
        return []
    first = _first_rows(train)
    differing = [row for row in _differing(train.labels, first) if any(text[row].strip() for text in train.texts)]
    if not differing:
        return []
    texts = np.unique(first[differing])
    count = np.isin(first, texts).sum()
    word = "text" if len(train.texts) == 1 else "pair"
    one, other = (f"{rows.numbers[row]}{_label(train, row, names)}" for row in (first[differing[0]], differing[0]))
    has = "has" if len(texts) == 1 else "have"
    return [
        f"{format_count(len(texts), word)} of train {has} different labels in different {rows.unit}s, {count:,} in all, such as "
        f"{rows.unit}s {one} and {other}: a model can be right on one of them alone"
    ]


def _first_rows(split: Split) -> np.ndarray:
    """Return for each example the first one of the same texts, int64 [example]."""
    known: dict[str | tuple[str, ...], int] = {}
    keys = split.texts[0] if len(split.texts) == 1 else zip(*split.texts, strict=True)
    return np.fromiter((known.setdefault(key, row) for row, key in enumerate(keys)), np.int64, len(split))


def _differing(labels: np.ndarray, first: np.ndarray) -> list[int]:
    """Return the examples whose label is not that of the `first` one of the same texts, in order."""
    repeated = np.flatnonzero(first != np.arange(len(first)))
    if labels.dtype == object:
        return [row for row in repeated.tolist() if not np.array_equal(labels[row], labels[first[row]])]
    differ = labels[repeated] != labels[first[repeated]]
    return repeated[differ if differ.ndim == 1 else differ.any(axis=1)].tolist()


def _label(split: Split, row: int, names: tuple[str, ...]) -> str:
    """Return the label of an example in brackets; nothing for several labels."""
    return f" ({brief(names[split.labels[row]])})" if split.labels.ndim == 1 and split.labels.dtype != object else ""
