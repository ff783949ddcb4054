"""Tasks: what the texts and labels are, where they come from, how they are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from ..errors import with_article
from ..fields import Name, Positive, PositiveFraction, Spec
from .kinds import KINDS, MAX_LENGTH, KindName, MetricName, Unit

Columns = Annotated[tuple[str, ...], Field(min_length=1, max_length=3)]

MEAN = "mean"  # the name in results of all reported splits together, if the headline score is the mean over them

# By unit and the allowed numbers of columns.
_COLUMNS: dict[tuple[Unit, tuple[int, ...]], str] = {
    ("text", (1, 2)): "one column or two",
    ("text", (2,)): "two columns, [query, passage]",
    ("word", (1,)): "one column",
    ("question", (2,)): "two columns, of questions and of contexts",
    ("choice", (2, 3)): "two columns, [context, endings], or three, the second of what each ending begins with",
    ("pair", (2,)): "two columns, whose vectors are compared",
}


class Files(Spec):
    """UTF-8 files, relative to the task file: .csv, .tsv, .jsonl or .parquet; SQuAD's .json; .conll, .conllu, .txt, .bio, .iob or .iob2, a
    word per line; for `embedding`, `train` may be plain text."""

    train: str = Field(description="training examples")
    tuning: str | None = Field(default=None, description="tuning split; default: held out of train")
    dev: str | dict[str, str] = Field(
        description="the reported split; several: name → file, the first for the headline score"
    )
    header: bool = Field(default=True, description="CSV, TSV: the first row holds the column names")
    columns: tuple[str, ...] | None = Field(
        default=None,
        description="CSV, TSV: column names, in place of those in a header; one word per line: names of all columns",
    )
    quoting: bool = Field(
        default=True, description="CSV, TSV: false if a quote is an ordinary character, as in GLUE's files"
    )


class Hub(Spec):
    """A data set on the Hugging Face hub, or a folder saved by `datasets`."""

    path: str = Field(description="OWNER/NAME, or a folder relative to the task file")
    name: str | None = Field(default=None, description="configuration of the data set")
    revision: str | None = Field(
        default=None, description="commit, required for OWNER/NAME: the task always reads the same data"
    )
    train: str = Field(default="train", description="name of the training split")
    tuning: str | None = Field(default=None, description="name of the tuning split; default: held out of train")
    dev: str | dict[str, str] = Field(
        default="validation",
        description="name of the reported split; several: name → split, the first for the headline score",
    )


class Synthetic(Spec):
    """An embedded task, made by the package's seeded generator."""

    generator: Literal["sentiment", "entailment", "similarity"] = Field(description="which embedded task")
    train: Positive = Field(default=6000, description="training examples, including the tuning split")
    dev: Positive = Field(default=1000, description="examples of the reported split")
    seed: int = Field(default=0, description="seed of the generator")


class TaskSpec(Spec):
    """What the texts and labels are, where they come from and how they are scored."""

    name: Name = Field(description="lower case")
    title: str | None = Field(default=None, description="what reports call it; default: the name")
    kind: KindName = Field(
        default="classification",
        description="what the model predicts: a label, any number of labels, a label per word, a span of a text, the order of a query's "
        "passages, one of several endings, a score, or a vector, whose cosine with another text's is compared with a score",
    )
    text: Columns = Field(
        description="one column; two for pairs of texts, as [question, context], [query, passage] or [context, endings]; or three for "
        "[context, beginning, endings], where every ending continues the beginning"
    )
    label: str | tuple[str, ...] = Field(
        description="column that holds a label, a list of labels, tags, spans or answers, a relevance, the right ending or a score; for "
        "a multilabel task also several columns of 0 and 1, one per label"
    )
    labels: tuple[str, ...] | None = Field(
        default=None,
        description="class names in the order of their ids; default: the sorted values of the training column",
    )
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)] = Field(
        description="metrics to report, in points; the headline score is their mean"
    )
    headline: Literal["first", "mean"] = Field(
        default="first",
        description="with several reported splits: whether the headline score is that of the first or, for an embedding task, their mean",
    )
    positive: str | None = Field(
        default=None, description="label that `f1` counts as positive; default: the last of two"
    )
    max_length: Positive = Field(
        default=MAX_LENGTH,
        description="in tokens, including special tokens; longer texts are truncated, or read in windows; default of a `span` task: 384",
    )
    tuning_fraction: PositiveFraction = Field(
        default=0.1, description="share of train held out for selection and calibration"
    )
    tuning_examples: Positive = Field(default=2000, description="upper limit on the tuning split, in examples")
    files: Files | None = Field(default=None, description="your own files")
    hub: Hub | None = Field(default=None, description="a data set on the hub")
    synthetic: Synthetic | None = Field(default=None, description="an embedded task")
    _file: Path | None = PrivateAttr(default=None)

    @property
    def file(self) -> Path | None:
        """The task file, used in messages only."""
        return self._file

    def read_from(self, file: Path) -> TaskSpec:
        """Return the same task, with the `file` that it was read from."""
        task = self.model_copy()
        task._file = file
        return task

    @model_validator(mode="before")
    @classmethod
    def _length_of_the_kind(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or "max_length" in fields:
            return fields
        usual = [kind.max_length for name, kind in KINDS.items() if name == fields.get("kind")]
        return {**fields, "max_length": usual[0]} if usual else fields

    @model_validator(mode="after")
    def _consistent(self) -> TaskSpec:
        sources = [name for name in ("files", "hub", "synthetic") if getattr(self, name) is not None]
        if len(sources) != 1:
            actual = f", found {' and '.join(sources)}" if sources else ""
            raise ValueError(f"expected one of `files`, `hub` or `synthetic`: where the data comes from{actual}")
        for field in ("text", "metrics"):
            if len(set(getattr(self, field))) != len(getattr(self, field)):
                raise ValueError(f"`{field}` names one twice: {list(getattr(self, field))}")
        wrong = [metric for metric in self.metrics if metric not in KINDS[self.kind].metrics]
        if wrong:
            raise ValueError(f"metrics {wrong} do not fit kind `{self.kind}`")
        self._check_label_columns()
        self._check_text_columns()
        self._check_label_is_no_text()
        self._check_headline()
        if not KINDS[self.kind].named_labels and self.labels:
            raise ValueError(f"a {self.kind} task has no `labels`")
        if (KINDS[self.kind].many or KINDS[self.kind].unit == "word") and self.positive is not None:
            raise ValueError(f"a {self.kind} task counts every label, so it has no `positive` one; leave it out")
        if not KINDS[self.kind].named_labels and self.positive is not None:
            raise ValueError(f"a {self.kind} task has no labels, so no `positive` one; leave it out")
        if self.labels is not None and (len(set(self.labels)) != len(self.labels) or len(self.labels) < 2):
            raise ValueError("`labels` needs at least two different names")
        if self.positive is not None and self.labels is not None and self.positive not in self.labels:
            raise ValueError(f"`positive` is {self.positive!r}, which is not among the labels {list(self.labels)}")
        return self

    def _check_text_columns(self) -> None:
        if len(self.text) in KINDS[self.kind].columns:
            return
        columns = KINDS[self.kind].columns
        wanted = _COLUMNS.get((KINDS[self.kind].unit, columns)) or f"{' or '.join(map(str, columns))} columns"
        raise ValueError(f"`text` of {with_article(self.kind)} task is {wanted}, found {list(self.text)}")

    def _check_label_is_no_text(self) -> None:
        both = next((name for name in self.label_columns if name in self.text), None)
        if both is not None:
            raise ValueError(
                f"`label`: column {both!r} is also in `text`, so models would read the answer; name another"
            )

    def _check_headline(self) -> None:
        if self.headline == "first":
            return
        if not KINDS[self.kind].averaged:
            raise ValueError(
                f"`headline: mean` is not for {with_article(self.kind)} task, whose headline score is that of its first reported split"
            )
        if len(self.reported) < 2:
            raise ValueError(
                "`headline: mean` needs several reported splits, as `dev: {NAME: FILE, …}`; found one: leave it out"
            )
        if MEAN in self.reported:
            raise ValueError(f"`dev`: with `headline: mean` no split may be called `{MEAN}`; give it another name")

    @property
    def reported(self) -> dict[str, str]:
        """Name of each reported split in results -> its file, or its name in the data set; empty for an embedded task."""
        source = self.files or self.hub
        dev = {} if source is None else source.dev
        return {"dev": dev} if isinstance(dev, str) else dev

    @property
    def pairs(self) -> bool:
        """Whether models read two texts at once."""
        return len(self.text) > 1 and KINDS[self.kind].unit != "pair"

    def _check_label_columns(self) -> None:
        if isinstance(self.label, str):
            return
        if not KINDS[self.kind].many:
            raise ValueError(f"`label` of a {self.kind} task is one column, found {list(self.label)}")
        if len(self.label) < 2 or len(set(self.label)) != len(self.label):
            raise ValueError(f"`label` needs at least two different columns of 0 and 1, found {list(self.label)}")
        if self.labels is not None:
            raise ValueError("`labels`: leave it out; the columns of `label` name the labels")

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The column of labels or scores, or the columns of 0 and 1 for each label."""
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def known_labels(self) -> tuple[str, ...] | None:
        """Label names in the order of their ids; for a kind without named labels the names of its outputs, if these have some; None if only
        the data tell them."""
        if not isinstance(self.label, str):
            return self.label
        return self.labels if KINDS[self.kind].named_labels else KINDS[self.kind].outputs
