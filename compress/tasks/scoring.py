"""A task's metrics for outputs. Needs numpy alone, so that a cached run does not import scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import CheckFailed, CompressError
from ..metrics import Headline, MeanHeadline
from ..spec.kinds import KINDS
from ..spec.task import TaskSpec
from .data import ReportedData, Split
from .kinds import TASK_KINDS


def score(
    spec: TaskSpec, labels: tuple[str, ...], logits: np.ndarray, gold: np.ndarray, sizes: Sequence[int] = ()
) -> dict[str, float]:
    """Return metric -> points, for outputs [example, output] or, if there is one output, [example].

    `gold`: as from the kind; `sizes`: of the splits concatenated here, if the score is the mean over several. Raises `CheckFailed` for
    non-finite logits, `CompressError` for shapes that do not fit the task.
    """
    outputs = np.asarray(logits, dtype=np.float64)
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs
    count = TASK_KINDS[spec.kind].output_count(labels)
    expected = (len(gold), outputs.shape[-1] if count is None else count)
    if outputs.shape != expected or not outputs.size:
        raise CompressError(f"task {spec.name}: expected logits of shape {expected}, found {outputs.shape}")
    broken = int((~np.isfinite(outputs)).any(axis=1).sum())
    if broken:
        unit = KINDS[spec.kind].unit
        raise CheckFailed(f"task {spec.name}: {broken:,} of {len(gold):,} {unit}s have logits that are not finite")
    return {name: headline_of(spec, labels, (name,), sizes)(outputs, gold) for name in spec.metrics}


def gold_of(spec: TaskSpec, split: Split) -> np.ndarray:
    """Return what outputs for the split are compared with."""
    return TASK_KINDS[spec.kind].labels.gold(split.labels, split.texts)


def reported_scores(
    data: ReportedData, outputs: Mapping[str, np.ndarray], gold: Mapping[str, np.ndarray]
) -> dict[str, dict[str, float]]:
    """Return the `score` of everything scores are reported on, by name, given its `outputs` and `reported_gold`. Raises like `score`."""
    return {name: score(data.spec, data.labels, outputs[name], gold[name], data.sizes(name)) for name in data.names}


def reported_gold(data: ReportedData) -> dict[str, np.ndarray]:
    """Return what outputs are compared with, for everything scores are reported on, by name."""
    return data.gathered({name: gold_of(data.spec, split) for name, split in data.splits.items()})


def headline_of(
    spec: TaskSpec, labels: tuple[str, ...], metrics: tuple[str, ...] | None = None, sizes: Sequence[int] = ()
) -> Headline:
    """Return the headline score of the task, or of some of its `metrics`; `sizes` as for `score`."""
    positive = labels.index(spec.positive) if spec.positive is not None else -1
    split_headline = TASK_KINDS[spec.kind].scoring.headline(metrics or spec.metrics, positive, labels)
    return MeanHeadline(split_headline, tuple(sizes)) if sizes else split_headline


def headline(scores: dict[str, float]) -> float:
    """Return the one number of a split: the mean of its metrics."""
    return sum(scores.values()) / len(scores)
