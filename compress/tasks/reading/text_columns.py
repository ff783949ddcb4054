"""The text columns that a task names, in files and data sets of any form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...errors import CompressError
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec


def text_columns(spec: TaskSpec, known: Collection[str], column: Callable[[str], list[Any]]) -> tuple[list[Any], ...]:
    """Return the columns in `spec.text`, out of those `known`. The endings of a choice may be in several columns: each row then has a
    dictionary of their names and texts."""
    if KINDS[spec.kind].unit != "choice":
        return tuple(column(name) for name in spec.text)
    *names, endings = spec.text
    both = next((name for name in ending_columns(endings, known) if name in (*names, *spec.label_columns)), None)
    if both is not None:
        raise CompressError(
            f"task {spec.name}: `text`: column {both!r} is one of the endings in {endings!r}, so it cannot be anything else; name another"
        )
    return *(column(name) for name in names), ending_values(endings, known, column)


def ending_values(name: str, known: Collection[str], column: Callable[[str], list[Any]]) -> list[Any]:
    """Return the values of a column with lists of endings, or of those found by `ending_columns`."""
    parts = ending_columns(name, known)
    if len(parts) == 1:
        return column(name)
    rows = zip(*map(column, parts), strict=True)
    kept = map(_without_blanks, rows)
    return [{"label": list(parts[: len(texts)]), "text": texts} for texts in kept]


def ending_columns(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the column `name`; if it does not exist, those in `name` separated by commas, or those named `name` plus a number or letter
    (`ending0`, `ending1`); only `name` if there are fewer than two."""
    if name in known:
        return (name,)
    listed = tuple(part.strip() for part in name.split(","))
    if len(listed) > 1:
        return listed
    behind = re.compile(rf"{re.escape(name)}([ _-]?\d+|[ _-][A-Za-z]|[A-Z])")
    suffixes = {other: match[1].strip(" _-") for other in known if (match := behind.fullmatch(other))}
    parts = sorted(suffixes, key=lambda other: (len(suffixes[other]), suffixes[other].upper()))
    return tuple(parts) if len(parts) > 1 else (name,)


def _without_blanks(texts: Sequence[Any]) -> list[Any]:
    """Return the texts without trailing blanks, since questions may have fewer endings than others."""
    kept = list(texts)
    while kept and (kept[-1] is None or kept[-1] == ""):
        kept.pop()
    return kept
