"""Choose the best of a question's endings by their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .classification import softmax
from .kind import AnswerKind, Names, Prediction, one_line


@dataclass(frozen=True)
class Chosen:
    """The ending that fits a context best: its `place` among those given, counted from 0, its text, and the probability of each ending, in
    the order given. Of equal ones the first is chosen."""

    place: int
    ending: str
    probabilities: tuple[float, ...]

    @property
    def probability(self) -> float:
        """Probability of the chosen ending."""
        return self.probabilities[self.place]


def choose_ending(endings: Sequence[str], scores: np.ndarray) -> Chosen:
    """Choose by the `scores` [ending] of the endings of one question."""
    (probabilities,) = softmax(scores[None])
    index = int(scores.argmax())
    return Chosen(index, endings[index], tuple(map(float, probabilities)))


def _scores(names: Names, outputs: np.ndarray) -> Iterator[Prediction]:
    """Return the scores of single pairs."""
    return (Prediction(None, float(row[0])) for row in outputs)


CHOICE = AnswerKind(
    problem_type=None,
    fits=lambda problem, outputs: (
        True
    ),  # transformers' classes for multiple choice have one output, whatever config.json says
    output_names=lambda labels: ("score",),
    answers=_scores,
    cells=lambda answer: (answer.ending, round(answer.probability, 6)),
    line=lambda answer: f"{one_line(answer.ending)}\t{answer.probability:.4f}",
    fields=lambda answer: {
        "place": answer.place,
        "ending": answer.ending,
        "probability": answer.probability,
        "probabilities": list(answer.probabilities),
    },
    unit="choice",
)
