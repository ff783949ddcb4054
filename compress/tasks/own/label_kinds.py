"""Detect what the labels of a user's texts are: scores, lists of labels, or classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import CompressError, brief
from ...fields import NOT_UNICODE, is_unicode
from ...files.tabular import are_label_lists, is_number, label_text
from ...spec.kinds import KINDS, KindName
from ..kinds.classification import MOST_UNLISTED_LABELS, natural, nested_rows, unlabelled_rows
from ..kinds.multilabel import listed_names
from ..reading.columns import Rows
from ..reading.number_texts import are_scores, comma_hint, whole_values
from ..reading.tables import Table, all_have, label_values, no_examples, refuse


def read_kind(
    table: Table, label: str | tuple[str, ...], kind: KindName | None = None
) -> tuple[KindName, tuple[str, ...] | None]:
    """Return (the kind of the labels: scores, lists of labels, or classes; their names in order, or None). `kind`: the user's choice.
    Raises `CompressError` for labels that do not fit."""
    values = label_values(table, label)
    if not values:
        raise no_examples(table.place)
    if not isinstance(label, str):
        return "multilabel", None
    lists = any(isinstance(value, list) for value in values) or are_label_lists(values)
    if kind == "multilabel" or (kind is None and lists):
        most = MOST_UNLISTED_LABELS if kind is None else None
        return "multilabel", listed_names(label, _label_rows(table, values), most=most)
    scores = [value for value in values if is_number(str(value))]
    scored = kind is None and len(scores) > len(values) / 2 and are_scores(scores)
    classes = kind in (None, "classification") and not scored
    several = (
        "; fill it in or remove the row, or give --kind multilabel if texts may have none or several" if classes else ""
    )
    if kind != "embedding":  # whose pairs without a score are left out later
        refuse(table.place, table.unit, unlabelled_rows(label, table.numbers, values), several)
    if kind in (None, "classification"):
        refuse(table.place, table.unit, nested_rows(label, table.numbers, values))
    if kind is None:
        kind = _scores_or_classes(table, label, values, scored=scored)
    if not KINDS[kind].named_labels:
        return kind, None
    names = _names(values)
    if len(names) < 2:
        only = ", ".join(names)
        raise CompressError(
            f"{table.place}: {all_have(len(values), 'example')} the label {only!r}; training needs at least two"
        )
    if not all(map(is_unicode, names)):
        raise CompressError(f"{table.place}: column {label!r}: {NOT_UNICODE}")
    return kind, names


def _scores_or_classes(table: Table, label: str, values: Sequence[Any], *, scored: bool) -> KindName:
    """Return `regression` or `classification`. CompressError: numbers with commas, texts among numbers that are mostly scores (`scored`),
    scores that may be classes, or more different values than a user is likely to have classes."""
    texts = [(n, v) for n, v in zip(table.numbers, values, strict=True) if not is_number(str(v))]
    hints = [(n, v, comma_hint(v)) for n, v in texts]
    if all(hint for *_, hint in hints):
        refuse(table.place, table.unit, [(n, f"{label}: found {brief(v)}{hint}") for n, v, hint in hints])
    if scored:
        wrong = [(n, f"{label}: expected a number, found {brief(v)}") for n, v in texts]
        refuse(table.place, table.unit, wrong, "; --kind classification, if they are classes")
    if are_scores(values):
        _check_not_classes(table, label, values)
        return "regression"
    if (count := len(_names(values))) > MOST_UNLISTED_LABELS:
        raise CompressError(
            f"{table.place}: column {label!r} has {count:,} different values; choose another with --label, "
            "or give --kind classification if they are classes, --kind regression if they are scores"
        )
    return "classification"


def _check_not_classes(table: Table, label: str, values: Sequence[Any]) -> None:
    """Raise `CompressError` if scores may be classes: tools that fill gaps write 0 and 1 as 0.0 and 1.0."""
    whole = whole_values(values)
    if whole:
        number, first = next((n, v) for n, v in zip(table.numbers, values, strict=True) if are_scores([v]))
        listed = ", ".join(f"{value:g}" for value in whole)
        raise CompressError(
            f"{table.place}: column {label!r} has the values {listed} alone, with a decimal point as in {first!r} ({table.unit} {number}): "
            "give --kind classification if they are classes, --kind regression if they are scores"
        )


def _label_rows(table: Table, values: list[Any]) -> Rows:
    return Rows(table.place, table.unit, table.numbers, (), values)


def _names(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(sorted({label_text(value) for value in values}, key=natural))
