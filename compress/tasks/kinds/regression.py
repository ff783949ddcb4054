"""A score per example."""

from __future__ import annotations

import math

import numpy as np

from ...errors import brief
from ...metrics import CorrelationHeadline
from ..ensembles import mean_of_scores
from ..reading.columns import Rows
from ..reading.number_texts import comma_hint, parse_number
from ..reading.tables import refuse
from .kind import ConstantBaseline, FidelityMeasures, Labels, Scoring, StoredForm, TaskKind, TeacherEnsemble

LARGEST_SCORE = float(np.finfo(np.float32).max)


def read_scores(rows: Rows, what: str = "score") -> np.ndarray:
    """Return float32 [example]. Raises `CompressError` naming the lines with invalid scores."""
    scores, problems = np.zeros(len(rows), dtype=np.float32), []
    for index, (number, value) in enumerate(zip(rows.numbers, rows.labels, strict=True)):
        score = parse_number(value)
        if math.isfinite(score) and abs(score) < LARGEST_SCORE:
            scores[index] = score
        else:
            problems.append((number, f"expected a finite {what}, found {brief(value)}{comma_hint(value)}"))
    refuse(rows.place, rows.unit, problems)
    return scores


REGRESSION = TaskKind(
    labels=Labels(
        read=lambda rows, names: read_scores(rows), description="a score", format=lambda label, names: float(label)
    ),
    scoring=Scoring(headline=lambda metrics, positive, names: CorrelationHeadline(metrics), by_correlation=True),
    constant_baseline=ConstantBaseline(
        outputs=lambda train, names, gold: train.mean(keepdims=True), description="a constant"
    ),
    answers=lambda outputs: outputs[:, 0],
    decisions=None,
    stored=StoredForm(
        from_outputs=lambda outputs: outputs[:, 0],
        to_outputs=lambda stored, names: stored,
        fits=lambda array, names: array.ndim == 1,
        dtype=lambda names: np.dtype(np.float32),
    ),
    fidelity=FidelityMeasures(divergence=lambda fp32, other: float(np.square(other - fp32).mean())),
    ensemble=TeacherEnsemble(mean=mean_of_scores),
)
