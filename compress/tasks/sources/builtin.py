"""The tasks that come with the package."""

from __future__ import annotations

from ...spec.task import Synthetic, TaskSpec
from .glue import GLUE

_TOYS = (
    TaskSpec(
        name="toy-sentiment",
        title="Embedded sentiment",
        text=("sentence",),
        label="label",
        labels=("negative", "positive"),
        metrics=("accuracy",),
        max_length=32,
        synthetic=Synthetic(generator="sentiment"),
    ),
    TaskSpec(
        name="toy-entailment",
        title="Embedded entailment",
        text=("premise", "hypothesis"),
        label="label",
        labels=("entailment", "neutral", "contradiction"),
        metrics=("accuracy",),
        max_length=48,
        synthetic=Synthetic(generator="entailment"),
    ),
    TaskSpec(
        name="toy-similarity",
        title="Embedded similarity",
        kind="regression",
        text=("sentence1", "sentence2"),
        label="score",
        metrics=("pearson", "spearman"),
        max_length=48,
        synthetic=Synthetic(generator="similarity"),
    ),
)
BUILTIN_TASKS: dict[str, TaskSpec] = GLUE | {spec.name: spec for spec in _TOYS}
