"""Check columns as read and convert them to a `Split`; errors name the line."""

from __future__ import annotations

from ...errors import CompressError, brief
from ...fields import NOT_UNICODE, is_unicode
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ..data import Split
from ..kinds import TASK_KINDS
from ..reading.columns import Rows
from ..reading.tables import all_have, no_examples, refuse


def to_split(
    spec: TaskSpec, rows: Rows, names: tuple[str, ...], *, training: bool = False, scored: bool = False
) -> Split:
    """Return the checked split. `training`: models learn its labels; `scored`: models are scored on them. Raises `CompressError` naming the
    place and the first wrong lines."""
    if not len(rows):
        raise no_examples(rows.place)
    _check_texts(spec, rows)
    kind = TASK_KINDS[spec.kind]
    labels = kind.labels.read(rows, names)
    if training and not kind.labels.vary(labels):
        if kind.labels.unvaried_error is not None:
            raise CompressError(f"{rows.place}: {kind.labels.unvaried_error}")
        gold = kind.labels.gold(labels, rows.texts)
        raise CompressError(
            f"{rows.place}: {all_have(len(gold), KINDS[spec.kind].unit)} the label {kind.labels.format(gold[0], names)!r}; "
            "training needs at least two"
        )
    if scored and kind.scoring.by_correlation and not kind.labels.vary(labels):
        raise CompressError(
            f"{rows.place}: {all_have(len(labels), KINDS[spec.kind].unit)} the score {labels[0]:g}; a correlation needs at least two"
        )
    return Split(tuple(rows.texts), labels, separate_texts=KINDS[spec.kind].unit == "pair")


def _hint(value: object) -> str:
    return "; lists of words are for the kind tagging" if isinstance(value, list) else ""


def _check_texts(spec: TaskSpec, rows: Rows) -> None:
    # For multiple choice, the last text column contains the middle ones.
    names = (spec.text[0], spec.text[-1]) if len(rows.texts) < len(spec.text) else spec.text
    for name, column in zip(names, rows.texts, strict=True):
        wrong = [(n, v) for n, v in zip(rows.numbers, column, strict=True) if not isinstance(v, str)]
        refuse(rows.place, rows.unit, [(n, f"{name}: expected text, found {brief(v)}{_hint(v)}") for n, v in wrong])
        halves = [n for n, v in zip(rows.numbers, column, strict=True) if not is_unicode(v)]
        refuse(rows.place, rows.unit, [(n, f"{name}: {NOT_UNICODE}") for n in halves])
        if not any(text.strip() for text in column):
            every = f"all {len(rows):,} rows" if len(rows) > 1 else "the only row"
            raise CompressError(f"{rows.place}: column {name!r} is empty in {every}; is it the right one?")
