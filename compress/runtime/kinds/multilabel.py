"""Logits of labels that are decided one by one -> those with a probability above one half."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .kind import AnswerKind, LabelsPrediction, Names, one_line

MULTI_LABEL = "multi_label_classification"  # in config.json


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return float64, of the logits' shape."""
    return 1 / (1 + np.exp(-np.clip(logits.astype(np.float64), -700, 700)))


def _answers(names: Names, outputs: np.ndarray) -> Iterator[LabelsPrediction]:
    for probabilities in sigmoid(outputs):
        scores = dict(zip(names, map(float, probabilities), strict=True))
        labels = sorted((name for name in names if scores[name] > 0.5), key=lambda name: -scores[name])
        yield LabelsPrediction(labels[0] if labels else None, max(scores.values()), scores, tuple(labels))


def _line(answer: LabelsPrediction) -> str:
    return ", ".join(f"{one_line(name)} {answer.scores[name]:.4f}" for name in answer.labels) or "-"


MULTILABEL = AnswerKind(
    problem_type=MULTI_LABEL,
    fits=lambda problem, outputs: problem == MULTI_LABEL,
    output_names=lambda labels: labels,
    answers=_answers,
    cells=lambda answer: (list(answer.labels), None),
    line=_line,
)
