"""A task from a user's files alone: which columns hold the texts and labels is said, what kind of task it is, is found."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from compress.errors import CompressError, did_you_mean
from compress.paths import from_home
from compress.spec.kinds import KINDS, KindName, MetricName
from compress.spec.task import Files, TaskSpec
from compress.tabular import CONLL, WORDS

from .answers import ANSWERS, CONTEXT, QUESTION, are_answers
from .builtin import BUILTIN_TASKS
from .columns import Rows
from .conll import TAGS
from .delimited import read_table
from .json_lists import are_lists, are_lists_of_spans
from .kinds import TASK_KINDS
from .kinds.tagging import listed_tags
from .label_kinds import read_kind
from .own_choices import choice_text, holds_endings, usual_choice
from .own_queries import PASSAGE, QUERY, RELEVANCES, ranks
from .spans import SPANS
from .tables import Table, brief
from .text_columns import ending_columns

_SPLITS = ("train", "training", "data")  # names of files that say nothing of the task


@dataclass(frozen=True)
class OwnFiles:
    """Files of the user's own, in place of a task. `train` and `dev`: .csv, .tsv, .jsonl or .parquet, with the same columns, SQuAD's
    .json, or .conll, .txt, .bio, .iob or .iob2 of a word a line.

    `text`, `pair`, `label`: columns of the texts, of the second texts of pairs, and of the labels, scores or answers. `kind`: by
    default span where labels are answers, tagging where texts are lists of words or labels are spans, multilabel where labels are
    lists, choice where the second texts are lists of endings, or stand in several columns, ranking where the columns are called query and
    passage and the labels are numbers, regression where they are numbers with a
    decimal point, else classification. Of a multilabel task `label` may be several columns of 0 and 1, with commas between.
    Of a choice `pair` is of endings; it may be several columns, and `text` two, the second of what each ending begins with. `max_length`:
    tokens.
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
    texts = _texts(table, own)
    if own.kind is None and ranks(table, own.texts, own.label):
        own = replace(own, kind="ranking")
    if own.kind == "ranking" and own.pair is None:
        raise CompressError("--pair: a ranking task has two columns of text; name that of the passages")
    label = _label_columns(table, own)
    for name in (label,) if isinstance(label, str) else label:
        check_column(table, "--label", name)
    _check_dev(own, table, (*own.texts, *((label,) if isinstance(label, str) else label)))
    if _has_answers(table, own):
        kind, labels, metrics = _spans(own)
    else:
        kind, labels, metrics = _tags(table, own) if _has_words(table, own) else _of_texts(table, label, own)
    spec = TaskSpec(
        name=task_name(train),
        kind=kind,
        text=texts,
        label=label,
        labels=labels,
        metrics=metrics,
        max_length=KINDS[kind].max_length if own.max_length is None else own.max_length,
        files=Files(train=train.name, dev=Path(os.path.relpath(dev, train.parent)).as_posix()),
    )
    return spec, from_home(own.train).parent


def _check_dev(own: OwnFiles, table: Table, columns: Sequence[str]) -> None:
    """Raises `CompressError` where --dev is a file of another form than --train, and lacks a column for that."""
    forms = [_form(path) for path in (own.train, own.dev)]
    if forms[0] == forms[1] or not from_home(own.dev).is_file():
        return
    found = list(read_table(from_home(own.dev)).columns)
    missing = next((name for name in columns if name not in found), None)
    if missing is not None:
        raise CompressError(
            f"--dev: expected a file with the columns of --train, found others: {own.train} is {forms[0]}, with "
            f"{', '.join(map(repr, columns))}, and {own.dev} is {forms[1]}, with {', '.join(map(repr, found))}; give both in one form"
        )


def _form(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in CONLL:
        return "a file of a word a line"
    return "one of SQuAD's" if suffix == ".json" else "a table"


def with_words(own: OwnFiles, table: Table) -> OwnFiles:
    """Where nobody named the columns, and none has the usual name: those of questions, of a word a line, of spans, or of passages."""
    said = (own.text, own.pair, own.label) != ("text", None, "label")
    own = _with_endings(own, table, said=said)
    if own.kind == "choice":
        return own
    asked = replace(own, text=QUESTION, pair=CONTEXT, label=ANSWERS)
    named = said or not table.columns.keys().isdisjoint(("text", "label"))
    if not named and table.columns.keys() >= {*asked.texts, ANSWERS} and are_answers(table.columns[ANSWERS]):
        return asked
    usual = {"text": (WORDS, QUERY), "label": (TAGS, SPANS, *RELEVANCES)}
    found = {
        field: next((name for name in names if name in table.columns), field)
        for field, names in usual.items()
        if getattr(own, field) == field and field not in table.columns
    }
    if found.get("text") == QUERY and own.pair is None and PASSAGE in table.columns:
        found["pair"] = PASSAGE
    return replace(own, **found)


def _with_endings(own: OwnFiles, table: Table, *, said: bool) -> OwnFiles:
    """Of questions with endings, the kind, and where nobody `said` how the columns are called, these."""
    if own.kind not in (None, "choice"):
        return own
    if not said and "text" not in table.columns and (found := usual_choice(table)) is not None:
        text, pair, label = found
        return replace(own, text=text, pair=pair, label=label, kind="choice")
    if table.word_numbers is not None:  # lists of words and tags
        return own
    if own.kind is None and own.pair is not None and own.pair != own.label and holds_endings(table, own.pair):
        return replace(own, kind="choice")
    return own


def _texts(table: Table, own: OwnFiles) -> tuple[str, ...]:
    """`TaskSpec.text`. CompressError: a column is not there."""
    if own.kind != "choice":
        for option, name in zip(("--text", "--pair"), own.texts, strict=False):
            check_column(table, option, name)
        return own.texts
    if own.pair is None:
        raise CompressError(
            "--pair: a choice has contexts and endings; name the column of the endings, or several with commas between"
        )
    found = choice_text(table, own.text, own.pair)
    for name in found[:-1]:
        check_column(table, "--text", name)
    for name in ending_columns(own.pair, table.columns):
        check_column(table, "--pair", name)
    return found


def _has_answers(table: Table, own: OwnFiles) -> bool:
    """Whether the task is to answer questions: by what the user says, or by the labels."""
    if own.kind is not None or own.label not in table.columns:
        return own.kind == "span"
    return are_answers(table.columns[own.label])


def _spans(own: OwnFiles) -> tuple[KindName, None, tuple[MetricName, ...]]:
    """The kind of task, no labels, and its metrics."""
    if own.pair is None:
        raise CompressError(
            "--pair: a span task has questions and contexts; name the column of the contexts, as --pair context"
        )
    return "span", None, KINDS["span"].metrics


def _has_words(table: Table, own: OwnFiles) -> bool:
    """Whether the task is to label words: by what the user says, or by lists of words, or spans of characters as labels."""
    if own.kind is not None or own.label not in table.columns:
        return own.kind == "tagging"
    texts, labels = table.columns[own.text], table.columns[own.label]
    spans = (value[0] for value in labels if isinstance(value, list) and value)
    if any(isinstance(text, list) for text in texts) or any(isinstance(span, dict | list) for span in spans):
        return True
    return own.pair is None and (are_lists_of_spans(labels) or (are_lists(texts) and are_lists(labels)))


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
    names = listed_tags(own.label, kind.prepared(spec, Rows.of(table, spec)))
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


def names_split(train: Path) -> bool:
    """Whether the file's name says what part of the data it is, such as train.csv, and nothing of the task."""
    return _stem(train).lower() in _SPLITS


def _stem(train: Path) -> str:
    return train.stem.removesuffix("-train").removesuffix("_train")


def task_name(train: Path) -> str:
    """A name for the task of this training file: the file's, or its folder's where the file's says `train`."""
    folder = train.resolve().parent.name
    words = [folder] if names_split(train) else [_stem(train), folder]
    slugs = [re.sub(r"[^a-z0-9._-]+", "-", word.lower()).strip("-._")[:58] for word in words]
    name = next((slug for slug in slugs if slug), "own")
    return f"{name}-own" if name in BUILTIN_TASKS else name
