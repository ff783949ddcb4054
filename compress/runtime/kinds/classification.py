"""Logits of classes -> the most probable one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .kind import AnswerKind, Names, Prediction, one_line


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return float64 [text, class]; each row sums to 1."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _answers(names: Names, outputs: np.ndarray) -> Iterator[Prediction]:
    for probabilities in softmax(outputs):
        scores = dict(zip(names, map(float, probabilities), strict=True))
        best = names[int(probabilities.argmax())]
        yield Prediction(best, scores[best], scores)


CLASSIFICATION = AnswerKind(
    problem_type="single_label_classification",
    fits=lambda problem, outputs: problem in (None, "single_label_classification"),
    output_names=lambda labels: labels,
    answers=_answers,
    cells=lambda answer: (answer.label, round(answer.score, 6)),
    line=lambda answer: f"{one_line(answer.label)}\t{answer.score:.4f}",
)
