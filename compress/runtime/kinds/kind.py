"""What a model answers with, and what differs between kinds of tasks in that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Names = tuple[str, ...]
Unit = Literal[
    "text", "word", "question", "choice", "pair"
]  # what a model answers; pair: a text, with a vector that is compared


@dataclass(frozen=True)
class Prediction:
    """The most probable label, its probability, and all of them by label.

    Regression: `score` is the model's output, `label` is None and `scores` is empty.
    """

    label: str | None
    score: float
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelsPrediction(Prediction):
    """Of a task with any number of labels: `labels` are those whose probability is above one half, the most probable first.

    `label` is the first of them, None where there is none; `score` is the largest probability, `scores` are all of them by label.
    """

    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class RelevancePrediction(Prediction):
    """Of a task that ranks passages: `score` is the model's output, the higher the more relevant; `probability` is its sigmoid.

    Scores of one query's passages compare. Trained against each other alone, a model is free to add the same number to all scores of
    a query: take no probability for a share of relevant passages without measuring.
    """

    probability: float = 0.0


@dataclass(frozen=True)
class AnswerKind:
    """How the outputs of a model for one kind of task become answers."""

    problem_type: str | None  # in config.json
    fits: Callable[
        [str | None, int], bool
    ]  # whether (config.json's problem_type, number of outputs) can be of this kind
    output_names: Callable[[Names], Names]  # label names, () for a kind without -> those of the outputs
    answers: Callable[
        [Names, np.ndarray], Iterator[Prediction]
    ]  # (output names, outputs [text, word or candidate, output])
    line: Callable[[Any], str]  # an answer as `compress predict` prints it
    cells: Callable[[Any], tuple[Any, float | None]]  # the same for a file: the answer, and how sure the model is
    fields: Callable[[Any], dict[str, Any]] = vars  # the same for a line of JSON
    config: Mapping[str, Any] = field(default_factory=dict)  # what else a bundle's config.json has
    # What is answered: a text, each word of it by a model …ForTokenClassification, a question about it, which of several endings it
    # has; pair: a text, by a vector.
    unit: Unit = "text"
