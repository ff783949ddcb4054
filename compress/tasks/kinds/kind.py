"""How task kinds differ in reading data, scoring models and comparing their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compress.metrics import Headline
from compress.metrics.tags import TypeScore
from compress.spec.kinds import MetricName
from compress.spec.task import TaskSpec

from ..reading.columns import Rows

Names = tuple[str, ...]
Metrics = tuple[MetricName, ...]


def _identity(value: Any) -> Any:
    return value


def _of_names(names: Names) -> int | None:
    return len(names) or 1


@dataclass(frozen=True)
class TaskKind:
    """One task kind. `names` are the label names in id order, () for a kind without.

    Labels are an array whose first axis is the text or question. Outputs are what a model gives, float [example, output]; an example is a
    text, or another unit in `KINDS`. `gold` are the labels in the form used with outputs and in files, [example, ...]. Answers are the
    decisions made from outputs. `kept` is what a report's folder stores of outputs. `mean` combines the outputs of several teachers, each
    divided by its `temperature`; a kind without `mean` allows one teacher, and one without `temperature` does not divide. For questions,
    `mean` is of the teachers' calibrated logits at tokens (`span_tables`).
    """

    label_names: Callable[[TaskSpec, Rows], Names]  # of (task, train as read); CompressError if unusable
    read_labels: Callable[[Rows, Names], np.ndarray]  # every label checked; CompressError names the lines
    written: Callable[[Any, Names], str | float]  # one label as text
    present: Callable[[np.ndarray], set[int]]  # ids of the label names that occur
    strata: Callable[[np.ndarray], list[int]]  # stratum of each example; the tuning split keeps their shares
    # Of (metrics, the positive label's id, -1: the last; names).
    headline: Callable[[tuple[str, ...], int, Names], Headline]
    # Of (train labels, names, gold): the output of the best model that ignores texts, or its outputs.
    constant: Callable[[np.ndarray, Names, np.ndarray], np.ndarray]
    constant_words: str  # describes that model
    label_words: str  # describes a label, if names are not listed
    answers: Callable[[np.ndarray], np.ndarray]
    kept: Callable[[np.ndarray], np.ndarray]  # of outputs, [example, ...] like labels
    outputs: Callable[[np.ndarray, Names], np.ndarray]  # of `kept`: outputs with the same answers and scores
    fits: Callable[[np.ndarray, Names], bool]  # whether gold, or `kept`, read from a file fits these names
    kept_type: Callable[[Names], np.dtype[np.generic]]  # the smallest for `kept` and gold
    confidence: Callable[[np.ndarray], np.ndarray] | None  # [example], 0 to 1; None: answers are not decisions
    divergence: Callable[[np.ndarray, np.ndarray], float]  # of (fp32 outputs, others): mean distance over examples
    mean: Callable[[Sequence[np.ndarray]], np.ndarray] | None = None  # of outputs, float64 [example, output]
    temperature: Callable[[np.ndarray, np.ndarray], float] | None = None  # of (outputs, gold)
    threshold: Callable[[np.ndarray, np.ndarray, Headline], float | np.ndarray] | None = (
        None  # of (outputs, gold, headline): the best threshold, one or [label],
    )
    # for `Encoded.decided`, if models decide at 0 without having learnt to
    types: Callable[[np.ndarray, np.ndarray, Names, Metrics], dict[str, TypeScore]] = lambda *_: {}
    # of (outputs, gold, names, metrics): scores of each entity type
    entity_flips: Callable[[np.ndarray, np.ndarray, np.ndarray, Names], tuple[int, int] | None] = lambda *_: None
    # of (fp32 outputs, others, gold, names): entities found by only one model, and all; None: labels are not of entities
    query_flips: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[int, int] | None] = lambda *_: None
    # of (fp32 outputs, others, gold): queries whose best passage changes, and all; None: examples are not passages
    exact_flips: Callable[[np.ndarray, np.ndarray], tuple[int, int] | None] = lambda *_: None
    # of (fp32 outputs, others): questions that only the first answer exactly, and only the second; None: not question answering
    prepared: Callable[[TaskSpec, Rows], Rows] = lambda spec, rows: rows  # converted for `read_labels`
    # Labels are not all the same.
    varied: Callable[[np.ndarray], bool] = lambda labels: len(np.unique(labels, axis=0)) > 1
    unvaried: str | None = None  # what a train that is not `varied` lacks, if not a second label
    # Of (a split's labels; index of each copy's source; number of the copy, from 0): the copies' labels.
    copied: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = lambda labels, sources, copy: labels[sources]
    # Of a split's columns.
    gold: Callable[[np.ndarray, Sequence[Sequence[str]]], np.ndarray] = lambda labels, texts: labels
    right: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # of (outputs, gold): which answers are right,
    # bool [example]; None like `confidence`
    correlates: bool = False  # whether scores are correlations, which are undefined for constant gold
    calibrated: bool = True  # whether `confidence` should equal the share of right answers
    logits: Callable[[np.ndarray], np.ndarray] = _identity  # of outputs: the model's own, without derived ones
    width: Callable[[Names], int | None] = _of_names  # outputs per example; None: depends on the model
    similarity: Callable[[np.ndarray, np.ndarray], dict[str, Any]] = lambda fp32, other: {}
    # of (fp32 outputs, others), if they are vectors: their similarity, as fields of `results.fidelity.Fidelity`
    fitting: Callable[[Metrics, Names], Metrics] = lambda metrics, names: metrics  # the metrics that fit these labels

    @property
    def decides(self) -> bool:
        """Whether answers are right or wrong, so that they can flip; scores only come nearer."""
        return self.confidence is not None
