"""A task from a user's files alone: which columns hold the texts and labels is said, what kind of task it is, is found."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from compress.errors import CompressError, did_you_mean
from compress.fields import NOT_UNICODE, is_unicode
from compress.paths import from_home
from compress.spec.kinds import KINDS, KindName, MetricName
from compress.spec.task import Files, TaskSpec
from compress.tabular import label_text

from .builtin import BUILTIN_TASKS
from .columns import Rows
from .conll import TAGS, WORDS
from .delimited import read_table
from .kinds import TASK_KINDS
from .kinds.classification import MOST_UNLISTED_LABELS, natural
from .kinds.multilabel import listed_names
from .kinds.tagging import listed_tags
from .spans import SPANS
from .tables import Table, brief, label_values, refuse

_SPLITS = ("train", "training", "data")  # names of files that say nothing of the task


@dataclass(frozen=True)
class OwnFiles:
    """Files of the user's own, in place of a task. `train` and `dev`: .csv, .tsv, .jsonl or .parquet, with the same columns, or .conll,
    .txt, .bio, .iob or .iob2 of a word a line.

    `text`, `pair`, `label`: columns of the texts, of the second texts of pairs, and of the labels or scores. `kind`: by
    default tagging where texts are lists of words or labels are spans, multilabel where labels are lists, regression where they are
    numbers with a decimal point, else classification. Of a multilabel task `label` may be several columns of 0 and 1, with commas
    between. `max_length`: tokens.
    """

    train: Path
    dev: Path
    text: str = "text"
    pair: str | None = None
    label: str = "label"
    kind: KindName | None = None
    max_length: int | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.pair is None else (self.text, self.pair)


def own_files(
    *,
    train: str | Path | None,
    dev: str | Path | None,
    text: str | None,
    pair: str | None,
    label: str | None,
    kind: str | None,
    max_length: int | None,
) -> OwnFiles | None:
    """The files that a command or a call names, with the columns `text` and `label` where it names none; None: no files.

    Raises `CompressError` for one without the other, for folders, and for columns of no file.
    """
    if train is None and dev is None:
        beside = {"--text": text, "--pair": pair, "--label": label, "--kind": kind, "--max-length": max_length}
        lost = next((option for option, value in beside.items() if value is not None), None)
        if lost is not None:
            raise CompressError(
                f"{lost} says what is in files of your own: expected --train FILE and --dev FILE with it"
            )
        return None
    if train is None:
        raise CompressError("--train: expected a file of labelled examples beside --dev, found none")
    if dev is None:
        raise CompressError(
            "--dev: expected a file of labelled examples beside --train, on which scores are reported; found none"
        )
    for option, path in (("--train", train), ("--dev", dev)):
        if from_home(path).is_dir():
            raise CompressError(f"{option}: expected a file of labelled examples, found the folder {path}")
    if kind is not None and kind not in KINDS:
        *names, last = KINDS
        raise CompressError(f"--kind: expected {', '.join(names)} or {last}, found {kind!r}")
    if max_length is not None and max_length < 1:
        raise CompressError(f"--max-length: expected at least 1 token, found {max_length}")
    text, label = "text" if text is None else text, "label" if label is None else label
    return OwnFiles(Path(train), Path(dev), text, pair, label, cast(KindName | None, kind), max_length)


def own_task(own: OwnFiles) -> tuple[TaskSpec, Path]:
    """The task and the folder of its training file, from which its paths start.

    Reads the training file. Raises `CompressError` for columns that are not there, and labels that fit no kind of task.
    """
    train, dev = (_real(from_home(path)) for path in (own.train, own.dev))
    if train == dev:
        raise CompressError(f"--dev: expected other examples than --train, found the same file {own.dev}")
    table = read_table(from_home(own.train))
    own = with_words(own, table)
    _check_words(own)
    for option, name in zip(("--text", "--pair"), own.texts, strict=False):
        check_column(table, option, name)
    label = _label_columns(table, own)
    for name in (label,) if isinstance(label, str) else label:
        check_column(table, "--label", name)
    kind, labels, metrics = _tags(table, own) if _has_words(table, own) else _of_texts(table, label, own)
    spec = TaskSpec(
        name=task_name(train),
        kind=kind,
        text=own.texts,
        label=label,
        labels=labels,
        metrics=metrics,
        max_length=TaskSpec.model_fields["max_length"].default if own.max_length is None else own.max_length,
        files=Files(train=train.name, dev=Path(os.path.relpath(dev, train.parent)).as_posix()),
    )
    return spec, from_home(own.train).parent


def with_words(own: OwnFiles, table: Table) -> OwnFiles:
    """Where nobody named the columns, and none has the usual name: those of a word a line, or of spans."""
    usual = {"text": (WORDS,), "label": (TAGS, SPANS)}
    found = {
        field: next((name for name in names if name in table.columns), field)
        for field, names in usual.items()
        if getattr(own, field) == field and field not in table.columns
    }
    return replace(own, **found)


def _has_words(table: Table, own: OwnFiles) -> bool:
    """Whether the task is to label words: by what the user says, or by lists of words, or spans of characters as labels."""
    if own.kind is not None or own.label not in table.columns:
        return own.kind == "tagging"
    spans = (value[0] for value in table.columns[own.label] if isinstance(value, list) and value)
    return any(isinstance(text, list) for text in table.columns[own.text]) or any(
        isinstance(span, dict | list) for span in spans
    )


def _tags(table: Table, own: OwnFiles) -> tuple[KindName, tuple[str, ...], tuple[MetricName, ...]]:
    """The kind of task, the labels of words, and the metrics that these have."""
    if own.pair is not None:
        raise CompressError("--pair: a tagging task has one column of text; leave it out")
    if not table.numbers:
        raise CompressError(f"{table.place}: no examples; expected at least one text")
    kind = TASK_KINDS["tagging"]
    files = Files(train="", dev="")
    every = KINDS["tagging"].metrics
    spec = TaskSpec(name="own", kind="tagging", text=(own.text,), label=own.label, metrics=every, files=files)
    columns = (table.column(own.text),), table.column(own.label)
    names = listed_tags(own.label, kind.prepared(spec, Rows(table.place, table.unit, table.numbers, *columns)))
    return "tagging", names, kind.fitting(every, names)[: KINDS["tagging"].usual]


def _of_texts(
    table: Table, label: str | tuple[str, ...], own: OwnFiles
) -> tuple[KindName, tuple[str, ...] | None, tuple[MetricName, ...]]:
    if own.kind is not None and KINDS[own.kind].unit == "pair" and own.pair is None:
        raise CompressError(f"--pair: an {own.kind} task has two columns of texts, to compare; name the second")
    kind, labels = read_kind(table, label, own.kind)
    return kind, labels, KINDS[kind].metrics[: KINDS[kind].usual]


def _label_columns(table: Table, own: OwnFiles) -> str | tuple[str, ...]:
    """Several, where the name is no column, its parts between commas may be, and the task may be of several labels."""
    parts = tuple(name.strip() for name in own.label.split(","))
    several = len(parts) > 1 and own.label not in table.columns and own.kind in (None, "multilabel")
    return parts if several else own.label


def _real(path: Path) -> Path:
    """Of a path through links, that which `..` in it leads up from."""
    return path.parent.resolve() / path.name


def _check_words(own: OwnFiles) -> None:
    given = {"--text": own.text, "--pair": own.pair, "--label": own.label}
    columns = [(option, name) for option, name in given.items() if name is not None]
    for index, (option, name) in enumerate(columns):
        for other, same in columns[:index]:
            if same == name:
                raise CompressError(f"{option}: expected another column than {other}, found {name!r} for both")


def check_column(table: Table, option: str, name: str) -> None:
    """Raises `CompressError` where the file has no column `name`, with those that it has."""
    if name in table.columns:
        return
    found = list(table.columns)
    if not found:
        raise CompressError(f"{table.place}: no examples; expected at least one row after the header")
    check_parted(table)
    near = did_you_mean(name, found).partition("; known")[0] or ";"
    raise CompressError(
        f"{table.place}: no column {name!r}{near} name one of {', '.join(map(repr, found))} with {option}, or let "
        "`compress init` find the columns"
    )


def check_parted(table: Table) -> None:
    """Raises `CompressError` where something else than what is read stands between the columns."""
    found = list(table.columns)
    if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
        raise CompressError(
            f"{table.place}: expected columns with commas between them, found {brief(found[0])}; save it with commas, "
            "or with tabs as .tsv"
        )


def read_kind(
    table: Table, label: str | tuple[str, ...], kind: KindName | None = None
) -> tuple[KindName, tuple[str, ...] | None]:
    """What the labels are: scores, lists of labels, or classes, and the names of these in their order. `kind`: what the user says
    they are."""
    values = label_values(table, label)
    if not values:
        raise CompressError(f"{table.place}: no examples; expected at least one row after the header")
    if not isinstance(label, str):
        return "multilabel", None
    if kind == "multilabel" or (kind is None and any(isinstance(value, list) for value in values)):
        return "multilabel", listed_names(label, Rows(table.place, table.unit, table.numbers, (), values))
    numbered = list(zip(table.numbers, values, strict=True))
    refuse(table.place, table.unit, [(n, f"{label}: no label") for n, value in numbered if not _written(value)])
    if kind is None:
        commas = [
            (n, f"{label}: found {brief(v)}; write {_pointed(v)!r}") for n, v in numbered if not _is_number(str(v))
        ]
        if all(_is_number(_pointed(value)) for value in values):
            refuse(table.place, table.unit, commas)
        kind = "regression" if _are_scores(values) else "classification"
        names = _names(values) if kind == "classification" else ()
        if len(names) > MOST_UNLISTED_LABELS:
            raise CompressError(
                f"{table.place}: column {label!r} has {len(names):,} different values; choose another with --label, or say "
                "--kind classification if they are classes, --kind regression if they are scores"
            )
    if not KINDS[kind].named_labels:
        return kind, None
    names = _names(values)
    if len(names) < 2:
        only = ", ".join(names)
        raise CompressError(
            f"{table.place}: all {len(values):,} examples have the label {only!r}; training needs at least two"
        )
    if not all(map(is_unicode, names)):
        raise CompressError(f"{table.place}: column {label!r}: {NOT_UNICODE}")
    return kind, names


def _written(value: Any) -> bool:
    return value is not None and bool(str(value).strip())


def _names(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(sorted({label_text(value) for value in values}, key=natural))


def _are_scores(values: Sequence[Any]) -> bool:
    """All are numbers, and some are written as numbers that need not be whole."""
    texts = {str(value).strip() for value in values if not isinstance(value, bool)}
    return len(texts) > 0 and all(map(_is_number, map(str, values))) and any(not _is_whole(text) for text in texts)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def _pointed(value: Any) -> str:
    """A number with a decimal comma as one with a point."""
    return str(value).replace(",", ".", 1)


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def task_name(train: Path) -> str:
    """A name for the task of this training file: the file's, or its folder's where the file's says `train`."""
    words = [train.stem.removesuffix("-train").removesuffix("_train"), train.resolve().parent.name]
    if words[0].lower() in _SPLITS:
        words = words[1:]
    slugs = [re.sub(r"[^a-z0-9._-]+", "-", word.lower()).strip("-._")[:58] for word in words]
    name = next((slug for slug in slugs if slug), "own")
    return f"{name}-own" if name in BUILTIN_TASKS else name
