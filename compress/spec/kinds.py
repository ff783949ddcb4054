"""The kinds of tasks, and the fields that a task of each kind may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KindName = Literal["classification", "multilabel", "tagging", "span", "ranking", "choice", "regression", "embedding"]
# What a model's outputs are for; choice: all endings of a question; pair: two texts, each of which it reads alone.
Unit = Literal["text", "word", "question", "choice", "pair"]
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
    """What tasks of a kind may have. `metrics`: those that fit the kind; a user's own files are scored by the first `usual` of them.
    `named_labels`: whether its labels have names, the same ones in all examples. `many`: whether an example may have several labels.
    `unit`: what is labelled, answered and scored. `outputs`: names of a model's outputs, for a kind without named labels whose models have
    more than one. `columns`: the allowed numbers of text columns. `max_length`: tokens, by default. `grouped`: for examples that are pairs
    of texts and belong to one query or question: the name of such a group, and of its second texts. `learnt`: whether teachers are trained
    on the labels; if not, labels only measure, and the teacher is used as it is. `averaged`: whether the headline score may be the mean
    over several reported splits."""

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
