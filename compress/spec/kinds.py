"""The kinds of tasks, and what a task may say of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KindName = Literal["classification", "multilabel", "tagging", "span", "ranking", "choice", "regression", "embedding"]
Unit = Literal[
    "text", "word", "question", "choice", "pair"
]  # what a model's outputs are of; choice: of all endings of a question; pair: of two texts, each of which it reads alone
MetricName = Literal[
    "accuracy",
    "entity_f1",
    "entity_f1_strict",
    "exact_match",
    "f1",
    "f1_macro",
    "f1_micro",
    "f1_span",
    "matthews",
    "mean_average_precision",
    "mrr@10",
    "ndcg@10",
    "pearson",
    "spearman",
]

MAX_LENGTH = 128  # tokens


@dataclass(frozen=True)
class KindFields:
    """`metrics`: those that fit the kind; its own files are scored by the first `usual` of them. `named_labels`: whether its labels have
    names, the same ones in all examples. `many`: whether an example may have several of these. `unit`: what is labelled, answered
    and scored. `outputs`: what a model of a kind whose labels have no names gives, where that is more than one number.
    `columns`: of texts, how many there may be. `max_length`: tokens, where the task says nothing else. `grouped`: whether examples
    are pairs of texts, of which those of one query or question belong together: what such a group is called, and what its second texts
    are. `learnt`: whether teachers are trained on the labels, which else are to measure with alone, and the teacher is taken as it is.
    `averaged`: whether the headline score may be the mean over several reported splits."""

    metrics: tuple[MetricName, ...]
    named_labels: bool
    usual: int = 1
    many: bool = False
    unit: Unit = "text"
    outputs: tuple[str, ...] = ()
    columns: tuple[int, ...] = (1, 2)
    max_length: int = MAX_LENGTH
    grouped: tuple[str, str] | None = None
    learnt: bool = True
    averaged: bool = False


KINDS: dict[KindName, KindFields] = {
    "classification": KindFields(metrics=("accuracy", "f1", "f1_macro", "matthews"), named_labels=True),
    "multilabel": KindFields(
        metrics=("f1_micro", "f1_macro", "mean_average_precision", "accuracy"), named_labels=True, usual=2, many=True
    ),
    "tagging": KindFields(
        metrics=("entity_f1", "entity_f1_strict", "accuracy"), named_labels=True, unit="word", columns=(1,)
    ),
    "span": KindFields(
        metrics=("exact_match", "f1_span"),
        named_labels=False,
        usual=2,
        unit="question",
        outputs=("start", "end"),
        columns=(2,),
        max_length=384,
    ),
    "ranking": KindFields(
        metrics=("ndcg@10", "mrr@10"), named_labels=False, usual=2, columns=(2,), grouped=("query", "passage")
    ),
    "choice": KindFields(
        metrics=("accuracy",),
        named_labels=False,
        unit="choice",
        columns=(2, 3),
        grouped=("question", "ending"),
    ),
    "regression": KindFields(metrics=("pearson", "spearman"), named_labels=False, usual=2),
    "embedding": KindFields(
        metrics=("spearman", "pearson"), named_labels=False, unit="pair", columns=(2,), learnt=False, averaged=True
    ),
}
