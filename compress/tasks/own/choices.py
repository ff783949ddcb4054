"""Files of multiple-choice questions: detect them, and which columns are which."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from ...files.tabular import flag, is_number
from ..reading.choices import endings_of
from ..reading.json_lists import are_lists
from ..reading.tables import Table
from ..reading.text_columns import ending_columns, ending_values

# Usual column names: SWAG, HellaSwag, RACE, CosmosQA, COPA, PIQA, CommonsenseQA, ARC and others.
_CONTEXTS = ("sent1", "ctx", "article", "passage", "context", "premise", "goal", "question")
_BEGINNINGS = ("sent2", "question")
_ENDINGS = ("endings", "ending", "choices", "choice", "options", "option", "answers", "answer", "sol")
_LISTS = ("endings", "choices", "options")
_LABELS = ("label", "answer", "answerKey", "answer_key", "gold")
_SAMPLE = 100  # rows


def usual_choice(table: Table, label_column: str, *, kind_chosen: bool = False) -> tuple[str, str, str] | None:
    """Return the columns (contexts, or "contexts,beginnings" if endings have a common beginning; endings; labels) of a file with usual
    names, or of one whose labels, in `label_column` if there is one, name the columns of endings; None if it has no such columns.
    `kind_chosen`: the user chose the kind, so a usual name for endings suffices."""
    known = table.columns
    endings = next((name for name in _ENDINGS if holds_endings(table, name)), None)
    endings = endings or _labelled_endings(table, label_column)
    # Lists that are written as texts are refused with their line later.
    endings = endings or next((name for name in _LISTS if are_lists(known.get(name, ()))), None)
    if endings is None and kind_chosen:
        endings = next((name for name in _ENDINGS if known.keys() >= {*ending_columns(name, known)}), None)
    context = next((name for name in _CONTEXTS if name in known), "text" if kind_chosen else None)
    if endings is None or context is None:
        return None
    taken = {context, *ending_columns(endings, known)}
    begins = next((name for name in _BEGINNINGS if name in known and name not in taken), None)
    label = next((name for name in _LABELS if name in known and name not in taken), "label" if kind_chosen else None)
    return None if label is None else (context if begins is None else f"{context},{begins}", endings, label)


def labelled_choice(table: Table, text: str, label: str) -> tuple[str, str, str] | None:
    """Return the columns (contexts; endings; labels) of a file whose labels name the columns of endings: those that the user named and, for
    the defaults `text` and `label`, usual ones where these do not exist. None if the labels name no columns, or also that of contexts."""
    if text == "text" and text not in table.columns:
        text = next((name for name in _CONTEXTS if name in table.columns), text)
    if label == "label":
        label = _label_column(table, label)
    contexts = choice_text(table, text, "")[:-1]
    endings = _labelled_endings(table, label) if {*contexts, label} <= table.columns.keys() else None
    return None if endings is None or not {*contexts}.isdisjoint(endings.split(",")) else (text, endings, label)


def _label_column(table: Table, label: str) -> str:
    return next((name for name in (label, *_LABELS) if name in table.columns), label)


def _labelled_endings(table: Table, label: str) -> str | None:
    """Return the columns of texts whose names are the labels, such as A, B, C and D, separated by commas; None if a label names none. If
    they are letters, columns with other letters, which no label of these rows may name, are also endings."""
    label = _label_column(table, label)
    named = {str(value).strip() for value in table.columns.get(label, ())}
    others = [name for name in table.columns if name != label]
    if not named or not named.issubset(others):
        return None
    letters = tuple(next((every for every in (ascii_uppercase, ascii_lowercase) if named.issubset(every)), ""))
    texts = {name for name in others if not _are_numbers(table.columns[name])}
    endings = [name for name in others if name in named or (name in letters and name in texts)]
    joined = ",".join(endings)
    return joined if named <= texts and holds_endings(table, joined) else None


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether all are numbers, or true or false."""
    return all(is_number(str(value)) or flag(value) is not None for value in values)


def holds_endings(table: Table, name: str) -> bool:
    """Whether the column, or those found by `ending_columns`, have two endings or more in most of the first rows; questions with fewer are
    reported with their line when endings are read."""
    parts = ending_columns(name, table.columns)
    if not table.numbers or not all(part in table.columns for part in parts):
        return False
    values = ending_values(name, table.columns, table.columns.__getitem__)[:_SAMPLE]
    return 2 * sum(isinstance(endings_of(value, name), list) for value in values) > len(values)


def choice_text(table: Table, text: str, endings: str) -> tuple[str, ...]:
    """Return `TaskSpec.text`; `text` may be two columns separated by a comma."""
    parts: Sequence[str] = [text] if text in table.columns else [part.strip() for part in text.split(",")]
    return (*parts, endings)
