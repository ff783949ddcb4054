"""Tasks: what the texts and labels are, where they come from, how they are scored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Fraction, Name, Positive, Spec

MetricName = Literal["accuracy", "f1", "f1_macro", "matthews", "pearson", "spearman"]
Columns = Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]


class Files(Spec):
    """CSV, TSV, JSONL or Parquet files, relative to the task file. `dev` is the reported split;
    several dev sets are given as a mapping from name to file."""

    train: str
    dev: str | dict[str, str]
    header: bool = True
    columns: tuple[str, ...] | None = None
    quoting: bool = True


class Hub(Spec):
    """A data set on the Hugging Face hub, read through `datasets`, or a folder it saved."""

    path: str
    name: str | None = None
    revision: str | None = None
    train: str = "train"
    dev: str | dict[str, str] = "validation"


class Synthetic(Spec):
    """An embedded task made by the package's seeded generator (sizes in examples)."""

    generator: Literal["sentiment", "entailment", "similarity"]
    train: Positive = 6000
    dev: Positive = 1000
    seed: int = 0


class TaskSpec(Spec):
    """A task. `text` names one or two columns; `labels` lists class names in the order of their ids
    (left out: the sorted values of the training column); regression has none."""

    name: Name
    title: str | None = None
    kind: Literal["classification", "regression"] = "classification"
    text: Columns
    label: str
    labels: tuple[str, ...] | None = None
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)]
    positive: str | None = Field(
        default=None, description="the label that `f1` counts as positive; default: the last of two"
    )
    max_length: Positive = Field(default=128, description="tokens, special tokens included; longer texts are cut")
    tuning_fraction: Annotated[Fraction, Field(gt=0)] = Field(
        default=0.1, description="share of train held out for selection and calibration"
    )
    tuning_examples: Positive = Field(default=2000, description="upper limit of the tuning split, in examples")
    files: Files | None = None
    hub: Hub | None = None
    synthetic: Synthetic | None = None

    @model_validator(mode="after")
    def _consistent(self) -> TaskSpec:
        given = [name for name in ("files", "hub", "synthetic") if getattr(self, name) is not None]
        if len(given) != 1:
            found = f", found {' and '.join(given)}" if given else ""
            raise ValueError(f"expected one of `files`, `hub` or `synthetic`: where the data comes from{found}")
        for field in ("text", "metrics"):
            if len(set(getattr(self, field))) != len(getattr(self, field)):
                raise ValueError(f"`{field}` names one twice: {list(getattr(self, field))}")
        regression = {"pearson", "spearman"}
        wrong = [m for m in self.metrics if (m in regression) != (self.kind == "regression")]
        if wrong:
            raise ValueError(f"metrics {wrong} do not fit kind `{self.kind}`")
        if self.kind == "regression" and self.labels:
            raise ValueError("a regression task has no `labels`")
        if self.kind == "regression" and self.positive is not None:
            raise ValueError("a regression task has no labels, so no `positive` one; leave it out")
        if self.labels is not None and (len(set(self.labels)) != len(self.labels) or len(self.labels) < 2):
            raise ValueError("`labels` needs at least two different names")
        if self.positive is not None and self.labels is not None and self.positive not in self.labels:
            raise ValueError(f"`positive` is {self.positive!r}, which is not among the labels {list(self.labels)}")
        return self
