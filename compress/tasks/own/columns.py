"""Which columns of a user's own files hold texts and labels: as given, or by their usual names."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from ...errors import CompressError, brief, nearest
from ...files.tabular import DELIMITERS, WORDS, label_columns, list_names
from ..reading.answers import ANSWERS, CONTEXT, QUESTION, are_answers
from ..reading.conll import TAGS
from ..reading.spans import SPANS
from ..reading.tables import Table, no_examples
from ..reading.text_columns import ending_columns
from .choices import choice_text, holds_endings, labelled_choice, usual_choice
from .files import OwnFiles
from .queries import PASSAGES, QUERY, RELEVANCES

_SAMPLE = 500  # rows
_TAG = re.compile(r"O|[BIESLU]-\S+")
_ALIKE = 0.7  # least similarity of a suggested column: with difflib's 0.6, `text` would suggest `Intent`
_WORDS_OF_TEXT = 3  # a name with this many is probably a text


def with_words(own: OwnFiles, table: Table) -> OwnFiles:
    """Return `own` with usual columns (of questions, word-per-line files, spans or passages) if the user named none and the default names
    do not exist."""
    named_by_user = (own.text, own.pair, own.label) != ("text", None, "label")
    own = _with_endings(own, table, named_by_user=named_by_user)
    if own.kind == "choice":
        return own
    if own.kind == "span" and table.columns.keys() >= {QUESTION, CONTEXT}:
        return _unless_named(own, table, QUESTION, CONTEXT, ANSWERS)
    questions = replace(own, text=QUESTION, pair=CONTEXT, label=ANSWERS)
    named = named_by_user or not table.columns.keys().isdisjoint(("text", "label"))
    if not named and table.columns.keys() >= {*questions.texts, ANSWERS} and are_answers(table.column(ANSWERS)):
        return questions
    usual = {"text": (WORDS, QUERY), "label": (TAGS, SPANS, *RELEVANCES)}
    columns = {
        field: next((name for name in names if name in table.columns), field)
        for field, names in usual.items()
        if getattr(own, field) == field and field not in table.columns
    }
    passage = next((name for name in PASSAGES if name in table.columns), None)
    if columns.get("text") == QUERY and own.pair is None and passage is not None:
        columns["pair"] = passage
    return replace(own, **columns)


def _with_endings(own: OwnFiles, table: Table, *, named_by_user: bool) -> OwnFiles:
    """Return `own` with the kind of multiple-choice files and, unless they are `named_by_user`, their columns."""
    if own.kind not in (None, "choice"):
        return own
    if own.kind == "choice":
        columns = usual_choice(table, own.label, kind_chosen=True)
        return own if columns is None else _unless_named(own, table, *columns)
    if not named_by_user and "text" not in table.columns and (columns := usual_choice(table, own.label)) is not None:
        text, pair, label = columns
        return replace(own, text=text, pair=pair, label=label, kind="choice")
    if table.word_numbers is not None:  # lists of words and tags
        return own
    if own.pair is None:
        columns = labelled_choice(table, own.text, own.label)
        return (
            own if columns is None else replace(own, text=columns[0], pair=columns[1], label=columns[2], kind="choice")
        )
    return replace(own, kind="choice") if own.pair != own.label and holds_endings(table, own.pair) else own


def _unless_named(own: OwnFiles, table: Table, text: str, pair: str, label: str) -> OwnFiles:
    """Return `own` with these columns, except those the user named, or if the table has the default `text` or `label`."""
    return replace(
        own,
        text=own.text if own.text != "text" or "text" in table.columns else text,
        pair=pair if own.pair is None else own.pair,
        label=own.label if own.label != "label" or "label" in table.columns else label,
    )


def text_names(table: Table, own: OwnFiles) -> tuple[str, ...]:
    """Return `TaskSpec.text`. Raises `CompressError` for a missing column."""
    if own.kind != "choice":
        for option, name in zip(("--text", "--pair"), own.texts, strict=False):
            check_column(table, option, name)
        return own.texts
    if own.pair is None:
        raise CompressError(
            "--pair: a choice has contexts and endings; name the column of the endings, or several, separated by commas"
        )
    names = choice_text(table, own.text, own.pair)
    for name in names[:-1]:
        check_column(table, "--text", name)
    for name in ending_columns(own.pair, table.columns):
        check_column(table, "--pair", name)
    return names


def label_names(table: Table, own: OwnFiles) -> str | tuple[str, ...]:
    """Return several columns if the name is not a column, its comma-separated parts may be, and the task may be multilabel; else the
    name."""
    columns = label_columns(own.label, table.columns)
    return columns if len(columns) > 1 and own.kind in (None, "multilabel") else own.label


def check_distinct_columns(own: OwnFiles, table: Table) -> None:
    """Raise `CompressError` if one column is named for two things, alone or among several."""
    parts = {
        "--text": label_columns(own.text, table.columns),
        "--pair": () if own.pair is None else _pair_columns(own, table),
        "--label": label_columns(own.label, table.columns),
    }
    columns = [(option, name) for option, names in parts.items() for name in names]
    for index, (option, name) in enumerate(columns):
        for other, same in columns[:index]:
            if same == name and other != option:
                raise CompressError(f"{option}: expected another column than {other}, found {name!r} for both")


def _pair_columns(own: OwnFiles, table: Table) -> tuple[str, ...]:
    read = ending_columns if own.kind == "choice" else label_columns
    return read(str(own.pair), table.columns)


def check_column(table: Table, option: str, name: str) -> None:
    """Raise `CompressError`, listing the columns, if the file has no column `name`."""
    if name in table.columns:
        table.check_whole(name, f"; fill it in, or name another column with {option}")
        return
    columns = list(table.columns)
    if not columns:
        raise no_examples(table.place)
    check_parted(table)
    check_tabular(table)
    first = headless(table)
    headed = "" if first is None else f"; or put a line of names above, if {brief(first)} is a value"
    near = nearest(name, columns, cutoff=_ALIKE) or ";"
    raise CompressError(
        f"{table.place}: no column {name!r}{near} name one of {list_names(columns)} with {option}, or let "
        f"`compress init` find the columns{headed}"
    )


def headless(table: Table) -> str | None:
    """Return the name of a column that is also one of its values, if another column's name is a whole text, as in a file without a
    header."""
    if not table.place.lower().endswith(tuple(DELIMITERS)):  # the others name the columns in every row
        return None
    texts = [name for name in table.columns if len(name.split()) >= _WORDS_OF_TEXT]
    alike = (name for name, values in table.columns.items() if name.strip() and name in map(str, values))
    return next((name for name in alike if any(text != name for text in texts)), None)


def check_tabular(table: Table) -> None:
    """Raise `CompressError` if a .csv or .tsv has one word in each line and blank lines between texts."""
    if not table.place.lower().endswith(tuple(DELIMITERS)):
        return
    numbers = [number for number in table.numbers[:_SAMPLE] if isinstance(number, int)]
    columns = [[str(value) for value in (name, *column[:_SAMPLE])] for name, column in table.columns.items()]
    blank = any(after - before > 1 for before, after in pairwise(numbers))
    words = all(len(value.split()) < 2 for column in columns for value in column)
    tagged = any(all(map(_TAG.fullmatch, column)) for column in columns)  # texts of some languages have no spaces
    if blank and len(columns) > 1 and words and tagged:
        raise CompressError(
            f"{table.place}: expected a table with a line of names, found a word in each line and blank lines between texts; rename the "
            "file so that it ends in .conll"
        )


def check_parted(table: Table) -> None:
    """Raise `CompressError` if columns are separated by something other than the expected delimiter."""
    columns = list(table.columns)
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        raise CompressError(
            f"{table.place}: expected columns with commas between them, found {brief(columns[0])}; save it with commas, "
            "or with tabs as .tsv"
        )
