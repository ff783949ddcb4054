"""Write a commented task file for a user's own files; columns that are not named are guessed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from ...errors import CompressError, brief
from ...files.paths import escape_home, expand_home
from ...files.tabular import CONLL, flag, label_columns, label_list, label_text, list_names
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ..kinds import TASK_KINDS
from ..kinds.embedding import is_blank
from ..loading.checks import to_split
from ..reading.columns import Rows
from ..reading.delimited import read_table
from ..reading.plain_text import is_plain_text
from ..reading.tables import Table
from ..reading.text_columns import ending_columns
from .columns import check_parted, check_tabular, headless, with_words
from .files import OwnFiles
from .label_guess import class_columns, guess_label, guess_scores
from .queries import PASSAGES, QUERY
from .task import names_split, own_task

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", *CONLL)
_DEV = ("dev", "validation", "valid", "val", "test", "eval")
_LONGER = {
    "text": "cut",
    "word": "read in windows that overlap",
    "question": "read in windows that overlap",
    "choice": "cut, the context first",
    "pair": "cut, each on its own",
}
_KINDS = (
    "classification: one label per text; multilabel: any number; tagging: one per word; span: a part of "
    "a text; ranking: the order of a query's passages; choice: one of several endings; regression: a "
    "score; embedding: vectors"
)
_LABEL_WORDS = {
    str: "column of the labels, scores, relevances, answers or correct endings",
    tuple: "columns of 0 and 1, one for each label",
}
_ONE_EACH = (
    "; each text of train has exactly one: if it must, write the labels into one column, for kind classification"
)
_TEXT_WORDS = {
    False: "one column, or two for pairs of texts",
    True: "columns of contexts, of the beginning of each ending if there is one, and of endings",
}
_WITHOUT_TUNING = {
    False: "without it, a tenth of train is held out",
    True: "name one with scores, since no pair of train has any",
}
_LABELS = ("label", "labels", "class", "category", "target", "relevance", "score", "stars", "rating", "sentiment", "intent", "topic",
    "tags", "ner_tags", "entities", "answers",
)  # fmt: skip
_TEXTS = (
    "text",
    "sentence",
    "review",
    "content",
    "body",
    "message",
    "comment",
    "question",
    "title",
    "utterance",
    "tokens",
    "words",
)
_SCORED = ("ranking", "regression", "embedding")  # kinds whose labels are numbers
_RELATED = (
    ("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2"), ("text_a", "text_b"),
    ("question", "context"), ("question", "sentence"), ("question", "answer"), ("question", "passage"),
    *((QUERY, name) for name in PASSAGES),
)  # fmt: skip
_PAIRS = (*_RELATED, ("subject", "body"))

# Of the longest texts' mean words, mean characters and different values: a column with less is not taken for the texts. The first of two
# texts may be repeated, as premises are with three hypotheses each.
_TEXT_SHARES = (1 / 3, 1 / 3, 1 / 4)


def files_in(folder: Path) -> tuple[Path, Path]:
    """Return the training file and the one to report scores on, found by their names. Raises `CompressError` if they do not exist."""
    return _file_in(folder, "--train", ("train",)), _file_in(folder, "--dev", _DEV)


def _file_in(folder: Path, option: str, stems: Sequence[str]) -> Path:
    names = [f"{stem}{suffix}" for suffix in _SUFFIXES for stem in stems]
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise CompressError(
            f"{option}: expected a file of labelled examples such as {names[0]}, found none here; name it with "
            f"{option} FILE"
        )
    return path


def guess_columns(own: OwnFiles, options: Sequence[str]) -> OwnFiles:
    """Return the files with every column that no option names guessed from names and values; `options`: of `text`, `pair`, `label`."""
    if is_plain_text(own.kind, own.train):
        raise CompressError(
            "--train: expected a file with columns to find, found plain text; name it in a task file, as `files.train`"
        )
    table = read_table(expand_home(own.train))
    own = with_words(own, table)
    check_parted(table)
    if own.kind == "choice" and own.pair is not None:
        return own
    names = {name.lower(): name for name in table.columns}
    if not options and not names.keys() & {*_LABELS, *_TEXTS, *(name for pair in _PAIRS for name in pair)}:
        _check_headed(table)
    named = {own.text if "text" in options else None, own.pair}
    label = own.label if "label" in options else _label(table, names, named, own)
    text, pair = own.text, own.pair
    if "text" not in options:
        pairs = [(names[one], names[two]) for one, two in _PAIRS if one in names and two in names]
        if pair is None and pairs and label not in pairs[0]:
            text, pair = pairs[0]
        else:
            text = _text_column(table, names, {*label_columns(label, table.columns), pair})
    return OwnFiles(own.train, own.dev, text, pair, label, own.kind, own.max_length)


def _check_headed(table: Table) -> None:
    """Raise `CompressError` if a file without a usual column name seems to start with an example."""
    check_tabular(table)
    first = headless(table)
    if first is not None:
        raise CompressError(
            f"{table.place}: its first line is read as the names of the columns, and {brief(first)} is a value, too; put a line of names "
            "above, or name the columns with --text and --label"
        )


def _label(table: Table, names: dict[str, str], texts: set[str | None], own: OwnFiles) -> str:
    """Return the column with a usual name, or else the one that its values suggest."""
    usual = [names[name] for name in _LABELS if name in names and names[name] not in texts]
    if own.kind in _SCORED and (scores := guess_scores(table, usual, texts, own.kind)) is not None:
        return scores
    if usual:
        return usual[0]
    few = class_columns(table, texts)
    # How two texts are related does not follow from the words of one, but their genre, say, does.
    if len(few) < 2 or own.pair is not None or any({*pair} <= names.keys() for pair in _RELATED):
        return guess_label(table, few, None, own.kind)
    try:
        text = next(filter(None, texts), None) or _text_column(table, names, {*few})
    except CompressError:  # only what may be classes is there
        text = None
    return guess_label(table, few, text, own.kind)


def _text_column(table: Table, names: dict[str, str], taken: set[str | None]) -> str:
    """Return the column with the first usual name; else the first column whose texts are long enough beside those with most words to be
    more than titles or ids, and differ enough to be more than names."""
    nested = {name for name, values in table.columns.items() if any(isinstance(value, dict) for value in values)}
    named = next((names[name] for name in _TEXTS if name in names and names[name] not in taken | nested), None)
    sizes = {
        name: (fmean(len(value.split()) for value in values), fmean(map(len, values)), len(set(values)))
        for name, values in table.columns.items()
        if name not in taken and values and all(isinstance(value, str) for value in values)
    }
    if named is None and not sizes:
        raise CompressError(
            f"{table.place}: no column looks like texts; name one of {list_names(table.columns)} with --text"
        )
    # By words or, where these have no spaces between them, by characters.
    longest = max(sizes.values(), default=(0.0, 0.0, 0))
    return named or next(
        name
        for name, size in sizes.items()
        if all(own >= share * most for own, share, most in zip(size, _TEXT_SHARES, longest, strict=True))
    )


def task_yaml(own: OwnFiles, file: Path) -> tuple[str, list[str], TaskSpec]:
    """Return the text of a task file at `file`, the columns of the training file that are neither texts nor labels, and the task.

    Raises `CompressError` like `own_task`, and for texts and labels that `run` would reject.
    """
    spec, _ = own_task(own)
    train, dev = (read_table(expand_home(path)) for path in (own.train, own.dev))
    unscored = not KINDS[spec.kind].learnt and all(map(is_blank, train.column(spec.label_columns[0])))
    prepared = [_texts_alone(spec, train) if unscored else _prepare_rows(spec, train), _prepare_rows(spec, dev)]
    for index, rows in enumerate(prepared):
        to_split(spec, rows, spec.known_labels or (), training=index == 0 and not unscored, scored=index > 0)
    longest = max(_count_words(value) for column in prepared[0].texts for value in column)
    others = [metric for metric in KINDS[spec.kind].metrics if metric not in spec.metrics]
    exclusive = isinstance(spec.label, tuple) and all(sum(map(bool, map(flag, row))) == 1 for row in prepared[0].labels)
    label_words = _LABEL_WORDS[type(spec.label)] + (_ONE_EACH if exclusive else "")
    read = {*spec.text, *ending_columns(spec.text[-1], train.columns), *spec.label_columns}
    rest = [name for name in train.columns if name not in read]
    lines = [
        "# What the texts and labels are, where they come from and how they are scored; docs/reference.md has all fields.",
        f"#     compress run int8 --teacher DIR --task {' '.join(file.name.split())}",
        "",
        f"name: {_inline_yaml(spec.name)}  # lower case; used in names of runs and in reports{_after_folder(own.train)}",
        f"kind: {spec.kind}  # {_KINDS}",
        f"text: {_inline_yaml(list(spec.text))}  # {_TEXT_WORDS[KINDS[spec.kind].unit == 'choice']}{_unused_columns(rest)}",
        f"label: {_inline_yaml(spec.label if isinstance(spec.label, str) else list(spec.label))}  # {label_words}",
    ]
    if spec.labels is not None:
        lines += [
            f"labels:  # in the order of their ids; after each, its {KINDS[spec.kind].unit}s in train",
            *(f"  - {_inline_yaml(name)}  # {count:,}" for name, count in _counts(spec, train)),
        ]
    lines += [
        f"metrics: {_inline_yaml(list(spec.metrics))}  # or {', '.join(others)}; the headline score is the mean of several"
        if others
        else f"metrics: {_inline_yaml(list(spec.metrics))}  # their mean is the headline score",
        f"max_length: {spec.max_length}  # tokens; longer texts are {_LONGER[KINDS[spec.kind].unit]} "
        f"(the longest text of train has {longest:,} word{'s' if longest > 1 else ''})",
        "files:  # relative to this file's folder",
        f"  train: {_inline_yaml(_path(own.train, file))}  # {len(train.numbers):,} examples",
        f"  dev: {_inline_yaml(_path(own.dev, file))}  # {len(dev.numbers):,} examples; scores are reported on them, once, at the end",
        f"  # tuning: FILE  # to choose checkpoints and settings on; {_WITHOUT_TUNING[unscored]}",
    ]
    return "\n".join(lines) + "\n", rest, spec


def _after_folder(train: Path) -> str:
    return (
        f"; taken from its folder, since {train.name} names no task: change it as you like"
        if names_split(train)
        else ""
    )


def _prepare_rows(spec: TaskSpec, table: Table) -> Rows:
    return TASK_KINDS[spec.kind].labels.prepare(spec, Rows.of(table, spec))


def _texts_alone(spec: TaskSpec, table: Table) -> Rows:
    return replace(Rows.of(table, spec), labels=[0.0] * len(table.numbers))


def _count_words(text: Any) -> int:
    return len(text if isinstance(text, list) else str(text).split())


def _unused_columns(rest: Sequence[str]) -> str:
    return f"; not used: {', '.join(brief(name) for name in rest[:8])}" if rest else ""


def _counts(spec: TaskSpec, train: Table) -> list[tuple[str, int]]:
    values = train.column(spec.label_columns[0])
    if KINDS[spec.kind].unit == "word":
        counts = Counter(name for labels in _prepare_rows(spec, train).labels for name, _, _ in labels)
        return [(name, counts[name]) for name in spec.labels or ()]
    many = KINDS[spec.kind].many
    counts = Counter(name for value in values for name in ((label_list(value) or []) if many else [label_text(value)]))
    return [(name, counts[name]) for name in spec.labels or ()]


def _path(path: Path, file: Path) -> str:
    place = expand_home(path)
    return escape_home(Path(os.path.relpath(place.parent.resolve() / place.name, file.parent.resolve())).as_posix())


def _inline_yaml(value: object) -> str:
    """Return the value as YAML on one line, quoted if necessary."""
    return yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1 << 30).split("\n...")[0].strip()
