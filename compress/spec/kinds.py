"""The kinds of tasks, and what a task may say of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KindName = Literal["classification", "regression"]
MetricName = Literal["accuracy", "f1", "f1_macro", "matthews", "pearson", "spearman"]


@dataclass(frozen=True)
class KindFields:
    """`metrics`: those that fit the kind. `named_labels`: whether its labels have names, the same ones in all examples."""

    metrics: tuple[MetricName, ...]
    named_labels: bool


KINDS: dict[KindName, KindFields] = {
    "classification": KindFields(metrics=("accuracy", "f1", "f1_macro", "matthews"), named_labels=True),
    "regression": KindFields(metrics=("pearson", "spearman"), named_labels=False),
}
