"""What differs between kinds of tasks in reading data, scoring models and comparing their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compress.metrics import Headline
from compress.metrics.tags import TypeScore
from compress.spec.kinds import MetricName
from compress.spec.task import TaskSpec

from ..columns import Rows

Names = tuple[str, ...]
Metrics = tuple[MetricName, ...]


def _itself(value: Any) -> Any:
    return value


def _of_names(names: Names) -> int | None:
    return len(names) or 1


@dataclass(frozen=True)
class TaskKind:
    """One kind. `names` are the label names in the order of their ids, () for a kind without.

    Labels are an array whose first axis is the text or the question; outputs are what a model gives, float [example, output], where an
    example is a text, or what else `KINDS` says; `gold` are the labels in the form in which they stand beside outputs and in files,
    [example, ...]; answers are what is decided by outputs. What a report's folder holds of outputs is `kept`. `mean` is of the outputs
    of several teachers, each divided by its `temperature`; a kind without takes one teacher alone, and one without `temperature`
    divides by nothing. Of questions `mean` is of what teachers say at tokens, calibrated (`span_tables`).
    """

    label_names: Callable[[TaskSpec, Rows], Names]  # (task, train as read); CompressError: they cannot be used
    read_labels: Callable[[Rows, Names], np.ndarray]  # every label checked; CompressError names the lines
    written: Callable[[Any, Names], str | float]  # one label as a person writes it
    present: Callable[[np.ndarray], set[int]]  # ids of the label names that occur
    strata: Callable[[np.ndarray], list[int]]  # of each example; the tuning split keeps their shares
    headline: Callable[
        [tuple[str, ...], int, Names], Headline
    ]  # of (metrics, the positive label's id, -1: the last; names)
    constant: Callable[
        [np.ndarray, Names, np.ndarray], np.ndarray
    ]  # (labels of train, names, gold) -> the output that the best model has that reads no text, or its outputs
    constant_words: str  # what that model does
    label_words: str  # a label, where its names are not listed
    answers: Callable[[np.ndarray], np.ndarray]
    kept: Callable[[np.ndarray], np.ndarray]  # of outputs, [example, ...] as labels are
    outputs: Callable[[np.ndarray, Names], np.ndarray]  # of what is kept: outputs that have the same answers and scores
    fits: Callable[[np.ndarray, Names], bool]  # whether gold, or what is kept, read from a file can be of these names
    kept_type: Callable[[Names], np.dtype[np.generic]]  # the smallest that holds what is kept, and gold
    confidence: Callable[[np.ndarray], np.ndarray] | None  # [example], 0 to 1; None: answers are no decisions
    divergence: Callable[[np.ndarray, np.ndarray], float]  # (fp32 outputs, others) -> their distance, an example's mean
    mean: Callable[[Sequence[np.ndarray]], np.ndarray] | None = None  # of outputs, float64 [example, output]
    temperature: Callable[[np.ndarray, np.ndarray], float] | None = None  # of (outputs, gold)
    threshold: Callable[[np.ndarray, np.ndarray, Headline], float | np.ndarray] | None = (
        None  # of (outputs, gold, headline): the one, or [label], at which
    )
    # outputs as `Encoded.collected` has them are best `decided`, where models decide at 0 and need not have learnt to
    types: Callable[[np.ndarray, np.ndarray, Names, Metrics], dict[str, TypeScore]] = lambda *_: {}
    # of (outputs, gold, names, metrics): the scores of each type of entity
    entity_flips: Callable[[np.ndarray, np.ndarray, np.ndarray, Names], tuple[int, int] | None] = lambda *_: None
    # of (fp32 outputs, others, gold, names): entities that are not both models', and all; None: labels are of no entities
    query_flips: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[int, int] | None] = lambda *_: None
    # of (fp32 outputs, others, gold): queries whose best passage is another one, and all; None: examples are no passages
    exact_flips: Callable[[np.ndarray, np.ndarray], tuple[int, int] | None] = lambda *_: None
    # of (fp32 outputs, others): questions that only the first answer exactly, and only the second; None: no questions are answered
    prepared: Callable[[TaskSpec, Rows], Rows] = lambda spec, rows: rows  # in the form that `read_labels` takes
    varied: Callable[[np.ndarray], bool] = lambda labels: (
        len(np.unique(labels, axis=0)) > 1
    )  # labels are not all the same
    unvaried: str | None = None  # what a train that is not `varied` lacks, where it is not a second label
    copied: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = lambda labels, sources, copy: labels[
        sources
    ]  # of a split's labels, each copy's source in it, and which copy of it, from 0: the copies' labels
    gold: Callable[[np.ndarray, Sequence[Sequence[str]]], np.ndarray] = lambda labels, texts: (
        labels
    )  # of a split's columns
    right: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # of (outputs, gold): which answers are right,
    # bool [example]; None as of `confidence`
    correlates: bool = False  # whether scores are correlations, which gold that is all the same has none of
    calibrated: bool = True  # whether `confidence` is how often answers should be right
    logits: Callable[[np.ndarray], np.ndarray] = _itself  # of outputs: those that are a model's own, not made of them
    width: Callable[[Names], int | None] = _of_names  # outputs of an example; None: as many as the model has
    similarity: Callable[[np.ndarray, np.ndarray], dict[str, Any]] = lambda fp32, other: {}
    # of (fp32 outputs, others), where they are vectors: how near these are, by the fields of `results.fidelity.Fidelity`
    fitting: Callable[[Metrics, Names], Metrics] = lambda metrics, names: metrics  # those that such labels can have

    @property
    def decides(self) -> bool:
        """Whether an answer is right or wrong, so that answers can flip; a score only comes nearer."""
        return self.confidence is not None
