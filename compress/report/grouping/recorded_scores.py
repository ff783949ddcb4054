"""The metric behind the scores in results, from the answers on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import CompressError
from ...metrics import Headline, MeanHeadline
from ...results import ModelResult, Result
from ...tasks import TASK_KINDS

_TOLERANCE = 0.01  # scores are stored rounded


@dataclass(frozen=True)
class Scored:
    """A model's answers on the first reported split, read from `file`, beside its score on record."""

    run: Result
    model: ModelResult
    outputs: np.ndarray
    gold: np.ndarray
    file: Path

    @property
    def score_and_answers(self) -> tuple[float, np.ndarray, np.ndarray]:
        """(points, outputs, gold), as `metric_giving` takes them."""
        return self.model.headline, self.outputs, self.gold


def metric_of(scored: Sequence[Scored]) -> Headline:
    """Return the metric that gives the recorded scores of all these models. Raises `CompressError` naming the first model
    whose own score no metric gives."""
    task = scored[0].run.task
    for each in scored:
        if metric_giving([each.score_and_answers], each.run, task.metrics, task.sizes) is None:
            raise CompressError(_contradiction(each))
    knowing = next((each.run for each in scored if each.run.task.positive is not None), scored[0].run)
    metric = metric_giving([each.score_and_answers for each in scored], knowing, task.metrics, task.sizes)
    if metric is None:
        raise CompressError(_contradiction(scored[0]))
    return metric


def metric_giving(
    scores: Sequence[tuple[float, np.ndarray, np.ndarray]],
    run: Result,
    metrics: tuple[str, ...],
    sizes: tuple[int, ...],
) -> Headline | None:
    """Return the mean of `metrics`, over splits of these `sizes` if there are any, that gives for each of `scores` the points, its first
    part, from outputs and gold labels. None if none does: outputs and points are not of the same run.

    Earlier versions did not record which class F1 counts: for their results classes are tried, the last one first, which is the default.
    """
    labels, known = run.task.labels, run.task.positive
    for positive in (-1, *range(len(labels) - 1)) if known is None else (labels.index(known),):
        metric = TASK_KINDS[run.task.kind].scoring.headline(metrics, positive, labels)
        metric = MeanHeadline(metric, sizes) if sizes else metric
        if all(abs(metric(outputs, gold) - points) <= _TOLERANCE for points, outputs, gold in scores):
            return metric
    return None


def _contradiction(scored: Scored) -> str:
    return (
        f"{scored.file}: its {scored.model.predictions} do not give the score in the result of {scored.run.run} "
        f"({scored.model.headline:.2f}); the two are not of the same run"
    )
