"""Build a task from a user's files alone: the columns of texts and labels are given, the task kind is detected."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import CompressError
from ...files.paths import escape_home, expand_home
from ...files.tabular import CONLL
from ...spec.kinds import KINDS, KindName, MetricName
from ...spec.task import Files, TaskSpec
from ..kinds import TASK_KINDS
from ..kinds.tagging import listed_tags
from ..reading.answers import are_answers
from ..reading.columns import Rows
from ..reading.delimited import read_table
from ..reading.json_lists import are_lists, are_lists_of_spans
from ..reading.plain_text import check_scored, is_plain_text
from ..reading.spans import LABEL as SPAN_LABEL
from ..reading.tables import Table
from ..sources.builtin import BUILTIN_TASKS
from .columns import check_column, check_distinct_columns, label_names, text_names, with_words
from .files import OwnFiles
from .label_kinds import read_kind
from .other_kinds import check_classes
from .queries import ranks

_SPLITS = ("train", "training", "data")  # file names that do not describe the task


def own_task(own: OwnFiles) -> tuple[TaskSpec, Path]:
    """Return the task and the folder of its training file, where its paths start.

    Reads the training file or, if that is plain text, the one to report scores on. Raises `CompressError` for missing columns, and labels
    that fit no task kind.
    """
    train, dev = (_real_path(expand_home(path)) for path in (own.train, own.dev))
    if train == dev:
        raise CompressError(f"--dev: expected other examples than --train, found the same file {own.dev}")
    check_scored("--dev", own.kind, own.dev)
    plain = is_plain_text(own.kind, own.train)
    table = read_table(expand_home(own.dev if plain else own.train))
    own = with_words(own, table)
    check_distinct_columns(own, table)
    texts = text_names(table, own)
    if own.kind is None and ranks(table, own.texts, own.label):
        own = replace(own, kind="ranking")
    if own.kind == "ranking" and own.pair is None:
        raise CompressError("--pair: a ranking task has two columns of text; name that of the passages")
    label = label_names(table, own)
    for name in (label,) if isinstance(label, str) else label:
        check_column(table, "--label", name)
    if not plain:
        _check_dev(own, (*own.texts, *((label,) if isinstance(label, str) else label)))
    if _has_answers(table, own):
        kind, labels, metrics = _spans(own)
    else:
        has_words = _has_words(table, own)
        if not has_words:
            check_classes(table, own)
        kind, labels, metrics = _tags(table, own) if has_words else _of_texts(table, label, own)
    length: dict[str, Any] = {} if own.max_length is None else {"max_length": own.max_length}
    spec = TaskSpec(
        name=own.name or task_name(train),
        kind=kind,
        text=texts,
        label=label,
        labels=labels,
        metrics=metrics,
        files=Files(
            train=escape_home(train.name),
            dev=escape_home(Path(os.path.relpath(dev, train.parent)).as_posix()),
        ),
        **length,
    )
    return spec, expand_home(own.train).parent


def _check_dev(own: OwnFiles, columns: Sequence[str]) -> None:
    """Raise `CompressError` if --dev is in another format than --train and therefore lacks a column."""
    forms = [_file_form(path) for path in (own.train, own.dev)]
    if forms[0] == forms[1] or not expand_home(own.dev).is_file():
        return
    dev_columns = list(read_table(expand_home(own.dev)).columns)
    missing = next((name for name in columns if name not in dev_columns), None)
    if missing is not None:
        raise CompressError(
            f"--dev: expected a file with the columns of --train, found others: {own.train} is {forms[0]}, with "
            f"{', '.join(map(repr, columns))}, and {own.dev} is {forms[1]}, with {', '.join(map(repr, dev_columns))}; "
            "give both in the same form"
        )


def _file_form(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in CONLL:
        return "a file of one word per line"
    return "one of SQuAD's" if suffix == ".json" else "a table"


def _has_answers(table: Table, own: OwnFiles) -> bool:
    """Whether it is a question answering task, by the user's choice or by the labels."""
    if own.kind is not None or own.label not in table.columns:
        return own.kind == "span"
    return are_answers(table.column(own.label))


def _spans(own: OwnFiles) -> tuple[KindName, None, tuple[MetricName, ...]]:
    """Return the task kind, no labels, and the metrics."""
    if own.pair is None:
        raise CompressError(
            "--pair: a span task has questions and contexts; name the column of the contexts, as --pair context; where texts have "
            "labels, leave --kind out"
        )
    return "span", None, KINDS["span"].metrics


def _has_words(table: Table, own: OwnFiles) -> bool:
    """Whether it is a tagging task, by the user's choice, or because of lists of words or character spans as labels."""
    if own.kind is not None or own.label not in table.columns:
        return own.kind == "tagging"
    texts, labels = table.column(own.text), table.column(own.label)
    if any(isinstance(value, dict) and SPAN_LABEL in value for value in labels):  # the hub's format for lists of spans
        return True
    spans = (value[0] for value in labels if isinstance(value, list) and value)
    if any(isinstance(text, list) for text in texts) or any(isinstance(span, dict | list) for span in spans):
        return True
    return own.pair is None and (are_lists_of_spans(labels) or (are_lists(texts) and are_lists(labels)))


def _tags(table: Table, own: OwnFiles) -> tuple[KindName, tuple[str, ...], tuple[MetricName, ...]]:
    """Return the task kind, the labels of words, and the metrics that fit them."""
    if own.pair is not None:
        raise CompressError(
            f"--pair: a tagging task has one column of text, found a second, {own.pair!r}; leave --pair out, or --kind if the files hold "
            "questions or pairs"
        )
    if not table.numbers:
        raise CompressError(f"{table.place}: no examples; expected at least one text")
    kind = TASK_KINDS["tagging"]
    files = Files(train="", dev="")
    every = KINDS["tagging"].metrics
    spec = TaskSpec(name="own", kind="tagging", text=(own.text,), label=own.label, metrics=every, files=files)
    names = listed_tags(own.label, kind.labels.prepare(spec, Rows.of(table, spec)))
    return "tagging", names, kind.scoring.applicable(every, names)[: KINDS["tagging"].usual]


def _of_texts(
    table: Table, label: str | tuple[str, ...], own: OwnFiles
) -> tuple[KindName, tuple[str, ...] | None, tuple[MetricName, ...]]:
    if own.kind is not None and KINDS[own.kind].unit == "pair" and own.pair is None:
        raise CompressError(f"--pair: an {own.kind} task has two columns of texts, to compare; name the second")
    kind, labels = read_kind(table, label, own.kind)
    return kind, labels, KINDS[kind].metrics[: KINDS[kind].usual]


def _real_path(path: Path) -> Path:
    """Return the path with links in its folder resolved, so that `..` leads up from the real folder."""
    return path.parent.resolve() / path.name


def names_split(train: Path) -> bool:
    """Whether the file's name names a part of the data, such as train.csv, rather than the task."""
    return _stem(train).lower() in _SPLITS


def _stem(train: Path) -> str:
    return train.stem.removesuffix("-train").removesuffix("_train")


def task_name(train: Path) -> str:
    """Return a name for the task of this training file: the file's name, or its folder's if the file is called `train` or similar."""
    folder = train.resolve().parent.name
    words = [folder] if names_split(train) else [_stem(train), folder]
    slugs = [re.sub(r"[^a-z0-9._-]+", "-", word.lower()).strip("-._")[:58] for word in words]
    name = next((slug for slug in slugs if slug), "own")
    return f"{name}-own" if name in BUILTIN_TASKS else name
