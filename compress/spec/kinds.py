"""The kinds of tasks, and what a task may say of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KindName = Literal["classification", "multilabel", "tagging", "regression", "embedding"]
Unit = Literal[
    "text", "word", "pair"
]  # what a model's outputs are of; pair: of two texts, each of which it reads alone
MetricName = Literal[
    "accuracy", "entity_f1", "f1", "f1_macro", "f1_micro", "matthews", "mean_average_precision", "pearson", "spearman"
]


@dataclass(frozen=True)
class KindFields:
    """`metrics`: those that fit the kind; its own files are scored by the first `usual` of them. `named_labels`: whether its labels have
    names, the same ones in all examples. `many`: whether an example may have several of these. `unit`: what is labelled, answered
    and scored. `learnt`: whether teachers are trained on the labels, which else are to measure with alone, and the teacher is taken as
    it is."""

    metrics: tuple[MetricName, ...]
    named_labels: bool
    usual: int = 1
    many: bool = False
    unit: Unit = "text"
    learnt: bool = True


KINDS: dict[KindName, KindFields] = {
    "classification": KindFields(metrics=("accuracy", "f1", "f1_macro", "matthews"), named_labels=True),
    "multilabel": KindFields(
        metrics=("f1_micro", "f1_macro", "mean_average_precision", "accuracy"), named_labels=True, usual=2, many=True
    ),
    "tagging": KindFields(metrics=("entity_f1", "accuracy"), named_labels=True, unit="word"),
    "regression": KindFields(metrics=("pearson", "spearman"), named_labels=False, usual=2),
    "embedding": KindFields(metrics=("spearman", "pearson"), named_labels=False, unit="pair", learnt=False),
}
