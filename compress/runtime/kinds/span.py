"""Scores of the spans that may answer a question -> the probability of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from .classification import softmax
from .kind import AnswerKind, Names, Prediction, one_line

Span = tuple[int, int, float]  # start and end in characters of the context, and the score


@dataclass(frozen=True)
class Answer:
    """A part of the context, `answer == context[start:end]`, in characters; "" from 0 to 0 if the question has no answer there.

    The fields are those of transformers 4's pipeline `question-answering`. `score` is the probability among the best spans and, if a
    question may have none, no answer: a softmax over the sums of their start and end logits.
    """

    answer: str
    score: float
    start: int
    end: int


def rank_answers(context: str, spans: Sequence[Span], none: float | None, names: Names) -> list[Answer]:
    """Return the candidate answers to a question, the likeliest first: `spans` of its `context`, the best first, and no answer with the
    score `none`; None: it has an answer. If there are no candidates, return no answer with the score 0."""
    candidates = list(spans) if none is None else sorted([*spans, (0, 0, none)], key=lambda span: -span[2])
    if not candidates:
        return [Answer("", 0.0, 0, 0)]
    answers = SPAN.answers(names, np.array([[score for _, _, score in candidates]]).T)
    return [
        Answer(context[start:end], one.score, start, end)
        for (start, end, _), one in zip(candidates, answers, strict=True)
    ]


def _answers(names: Names, outputs: np.ndarray) -> Iterator[Prediction]:
    """Return predictions for `outputs` [candidate, 1] of one question."""
    return (Prediction(None, float(score)) for score in softmax(outputs.T)[0])


def _line(answer: Answer) -> str:
    return f"{one_line(answer.answer) or '-'}\t{answer.score:.4f}"


SPAN = AnswerKind(
    problem_type=None,
    fits=lambda problem, outputs: True,
    output_names=lambda labels: ("start", "end"),
    answers=_answers,
    cells=lambda answer: (answer.answer, round(answer.score, 6)),
    line=_line,
    fields=asdict,
    unit="question",
)
