"""The answers of a model, and how they differ between kinds of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Names = tuple[str, ...]
# What a model answers; pair: a text, by a vector that is compared.
Unit = Literal["text", "word", "question", "choice", "pair"]


@dataclass(frozen=True)
class Prediction:
    """The most probable label, its probability, and all probabilities by label.

    For regression `score` is the model's output, `label` is None and `scores` is empty.
    """

    label: str | None
    score: float
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelsPrediction(Prediction):
    """For a task with any number of labels: `labels` are those with a probability above one half, the most probable first.

    `label` is the first of them, None if there is none; `score` is the largest probability, `scores` are all probabilities by label.
    """

    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class RelevancePrediction(Prediction):
    """For a task that ranks passages: `score` is the model's output, higher for more relevant passages; `probability` is its sigmoid.

    Only scores of one query's passages are comparable. A model trained on their order alone may add any number to all scores of a query: do
    not take a probability for a share of relevant passages without measuring.
    """

    probability: float = 0.0


def one_line(text: str | None) -> str:
    """Return `text` without line ends and tabs, which end lines and fields of what `compress predict` prints."""
    return " ".join(str(text).split())


@dataclass(frozen=True)
class AnswerKind:
    """How the outputs of a model for one kind of task become answers."""

    problem_type: str | None  # in config.json
    # Whether (config.json's problem_type, number of outputs) can be of this kind.
    fits: Callable[[str | None, int], bool]
    output_names: Callable[[Names], Names]  # label names, () for a kind without -> those of the outputs
    # (output names, outputs [text, word or candidate, output]).
    answers: Callable[[Names, np.ndarray], Iterator[Prediction]]
    line: Callable[[Any], str]  # an answer as `compress predict` prints it
    cells: Callable[[Any], tuple[Any, float | None]]  # the same for a file: the answer, and the model's confidence
    fields: Callable[[Any], dict[str, Any]] = vars  # the same for a line of JSON
    config: Mapping[str, Any] = field(default_factory=dict)  # further fields of a bundle's config.json
    # What is answered: a text, each word of it by a model …ForTokenClassification, a question about it, which of several endings it
    # has; pair: a text, by a vector.
    unit: Unit = "text"
