"""How task kinds differ in reading data, scoring models and comparing their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics import Headline
from ...metrics.tags import TypeScore
from ...spec.kinds import MetricName
from ...spec.task import TaskSpec
from ..reading.columns import Rows

Names = tuple[str, ...]
Metrics = tuple[MetricName, ...]


def _no_names(spec: TaskSpec, train: Rows) -> Names:
    return ()


def _none_present(labels: np.ndarray) -> set[int]:
    return set()


def _one_stratum(labels: np.ndarray) -> list[int]:
    return [0] * len(labels)


def _unchanged(spec: TaskSpec, rows: Rows) -> Rows:
    return rows


def _differ(labels: np.ndarray) -> bool:
    return len(np.unique(labels, axis=0)) > 1


def _labels_of_sources(labels: np.ndarray, sources: np.ndarray, copy: np.ndarray) -> np.ndarray:
    return labels[sources]


def _same_labels(labels: np.ndarray, texts: Sequence[Sequence[str]]) -> np.ndarray:
    return labels


@dataclass(frozen=True, kw_only=True)
class Labels:
    """How labels are read and used. They are an array whose first axis is the text or question; `names` are their names in id order, ()
    for a kind without.

    `prepare(spec, rows)`: rows converted for `names` and `read`.
    `names(spec, train)`: of the task. `CompressError` if unusable.
    `read(rows, names)`: every label, checked. `CompressError` names the wrong lines.
    `description`: what a label is, for tasks that list no names.
    `format(label, names)`: one label or answer as text, or a score.
    `present(labels)`: ids of the names that occur.
    `strata(labels)`: stratum of each example; the tuning split keeps their shares.
    `vary(labels)`: whether they are not all the same, so that there is something to learn. `unvaried_error`: what is wrong with a train
    whose labels do not vary; None: all are the same label.
    `copied(labels, sources, copy)`: those of augmented copies, from a split's. `sources`: indices of the originals; `copy`: numbers of an
    original's copies, from 0.
    `gold(labels, texts)`: a split's labels in the form used with outputs and in files, [example, ...]. `texts`: its columns.
    """

    prepare: Callable[[TaskSpec, Rows], Rows] = _unchanged
    names: Callable[[TaskSpec, Rows], Names] = _no_names
    read: Callable[[Rows, Names], np.ndarray]
    description: str
    format: Callable[[Any, Names], str | float]
    present: Callable[[np.ndarray], set[int]] = _none_present
    strata: Callable[[np.ndarray], list[int]] = _one_stratum
    vary: Callable[[np.ndarray], bool] = _differ
    unvaried_error: str | None = None
    copied: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = _labels_of_sources
    gold: Callable[[np.ndarray, Sequence[Sequence[str]]], np.ndarray] = _same_labels


def _all_metrics(metrics: Metrics, names: Names) -> Metrics:
    return metrics


def _no_types(outputs: np.ndarray, gold: np.ndarray, names: Names, metrics: Metrics) -> dict[str, TypeScore]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How outputs are scored against gold.

    `headline(metrics, positive, names)`: the headline score. `positive`: id of the positive label; -1: the last.
    `applicable(metrics, names)`: the metrics that fit these labels.
    `entity_types(outputs, gold, names, metrics)`: scores of each entity type.
    `by_correlation`: scores are correlations, which are undefined for constant gold.
    """

    headline: Callable[[tuple[str, ...], int, Names], Headline]
    applicable: Callable[[Metrics, Names], Metrics] = _all_metrics
    entity_types: Callable[[np.ndarray, np.ndarray, Names, Metrics], dict[str, TypeScore]] = _no_types
    by_correlation: bool = False


@dataclass(frozen=True, kw_only=True)
class ConstantBaseline:
    """The best model that ignores texts.

    `outputs(labels, names, gold)`: those for the examples of `gold`, or one output for all. `labels`: of train.
    `description`: what it does, for messages.
    """

    outputs: Callable[[np.ndarray, Names, np.ndarray], np.ndarray]
    description: str


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """For answers that are right or wrong, so that they can flip; scores only come nearer.

    `confidence(outputs)`: [example], 0 to 1. `calibrated`: it should equal the share of correct answers.
    `correct(outputs, gold)`: which answers are right, bool [example].
    """

    confidence: Callable[[np.ndarray], np.ndarray]
    calibrated: bool = True
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class StoredForm:
    """What a report's folder stores of outputs.

    `from_outputs(outputs)`: [example, ...] like gold.
    `to_outputs(stored, names)`: outputs with the same answers and scores.
    `fits(array, names)`: whether gold, or the stored form, read from a file fits these names.
    `dtype(names)`: the smallest for both.
    """

    from_outputs: Callable[[np.ndarray], np.ndarray]
    to_outputs: Callable[[np.ndarray, Names], np.ndarray]
    fits: Callable[[np.ndarray, Names], bool]
    dtype: Callable[[Names], np.dtype[np.generic]]


def _no_similarity(fp32: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    return {}


def _no_flips(*_: Any) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class FidelityMeasures:
    """How far another model's outputs are from those of the fp32 model that it was made from.

    `divergence(fp32, other)`: mean distance over examples.
    `similarity(fp32, other)`: of vectors, as fields of `results.fidelity.Fidelity`.
    `entity_flips(fp32, other, gold, names)`: entities found by only one model, and all. None: labels are not of entities.
    `query_flips(fp32, other, gold)`: queries whose best passage changes, and all. None: examples are not passages.
    `exact_flips(fp32, other)`: questions that only the first answers exactly, and only the second. None: not question answering.
    """

    divergence: Callable[[np.ndarray, np.ndarray], float]
    similarity: Callable[[np.ndarray, np.ndarray], dict[str, Any]] = _no_similarity
    entity_flips: Callable[[np.ndarray, np.ndarray, np.ndarray, Names], tuple[int, int] | None] = _no_flips
    query_flips: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[int, int] | None] = _no_flips
    exact_flips: Callable[[np.ndarray, np.ndarray], tuple[int, int] | None] = _no_flips


@dataclass(frozen=True, kw_only=True)
class TeacherEnsemble:
    """How several teachers are combined.

    `mean(outputs)`: of each teacher's outputs, divided by its temperature, float64 [example, output]. For questions, of the teachers'
    calibrated logits at tokens (`span_tables`).
    `fit_temperature(outputs, gold)`: the one that calibrates a teacher. None: outputs are not divided.
    """

    mean: Callable[[Sequence[np.ndarray]], np.ndarray]
    fit_temperature: Callable[[np.ndarray, np.ndarray], float] | None = None


def _same_outputs(outputs: np.ndarray) -> np.ndarray:
    return outputs


def _one_per_name(names: Names) -> int | None:
    return len(names) or 1


@dataclass(frozen=True, kw_only=True)
class TaskKind:
    """One task kind. `names` and `gold` are as in `Labels`.

    Outputs are what a model gives, float [example, output]; an example is a text, or another unit in `KINDS`.
    `output_count(names)`: outputs of an example. None: depends on the model.
    `logits(outputs)`: the model's own, without derived ones.
    `answers(outputs)`: what it decides, or its scores.
    `fit_threshold(outputs, gold, headline)`: the best threshold for `Encoded.decided`, one or [label], as models decide at 0 without
    having learnt to. None: answers depend on no threshold.
    `decisions`: None: answers are scores.
    `ensemble`: None: the kind allows one teacher.
    """

    labels: Labels
    scoring: Scoring
    constant_baseline: ConstantBaseline
    output_count: Callable[[Names], int | None] = _one_per_name
    logits: Callable[[np.ndarray], np.ndarray] = _same_outputs
    answers: Callable[[np.ndarray], np.ndarray]
    fit_threshold: Callable[[np.ndarray, np.ndarray, Headline], float | np.ndarray] | None = None
    decisions: Decisions | None
    stored: StoredForm
    fidelity: FidelityMeasures
    ensemble: TeacherEnsemble | None
