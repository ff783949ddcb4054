"""One output -> a score."""

from __future__ import annotations

from .kind import AnswerKind, Prediction

REGRESSION = AnswerKind(
    problem_type="regression",
    fits=lambda problem, outputs: problem == "regression" or (problem is None and outputs == 1),
    output_names=lambda labels: labels or ("score",),
    answers=lambda names, outputs: (Prediction(None, float(row[0])) for row in outputs),
    cells=lambda answer: (answer.score, None),
    line=lambda answer: f"{answer.score:.4f}",
)
