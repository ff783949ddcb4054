"""Vectors of length 1; the cosine of a pair of texts is the product of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .kind import AnswerKind, Names, Prediction

VectorAnswer = np.ndarray | Prediction  # for a text its vector, float32 [width]; for a pair its cosine, as a score
DIGITS = 7  # after the point: float32 has no more for numbers below 1


def _answers(names: Names, outputs: np.ndarray) -> Iterator[Prediction]:
    """Return predictions for pairs: `outputs` [pair, 1], their cosines."""
    return (Prediction(None, float(row[0])) for row in outputs)


def rounded_numbers(vector: np.ndarray) -> list[float]:
    """Return the numbers of a vector as they are written."""
    return [round(number, DIGITS) for number in vector.astype(np.float64).tolist()]


def _line(answer: VectorAnswer) -> str:
    if isinstance(answer, Prediction):
        return f"{answer.score:.4f}"
    return " ".join(f"{number:.6g}" for number in answer.tolist())


def _cells(answer: VectorAnswer) -> tuple[Any, None]:
    return (round(answer.score, DIGITS) if isinstance(answer, Prediction) else rounded_numbers(answer)), None


def _fields(answer: VectorAnswer) -> dict[str, Any]:
    return {"cosine": answer.score} if isinstance(answer, Prediction) else {"vector": rounded_numbers(answer)}


EMBEDDING = AnswerKind(
    problem_type=None,
    fits=lambda problem, outputs: True,
    output_names=lambda labels: (),
    answers=_answers,
    cells=_cells,
    line=_line,
    fields=_fields,
    unit="pair",
)
