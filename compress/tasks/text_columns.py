"""The columns of texts that a task names, of files and data sets of any form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from compress.spec.kinds import KINDS
from compress.spec.task import TaskSpec


def text_columns(spec: TaskSpec, known: Collection[str], column: Callable[[str], list[Any]]) -> tuple[list[Any], ...]:
    """Those that `spec.text` names, of the columns that are `known`. The endings of a choice may stand in several columns: then each
    row has a dictionary of their names and texts."""
    if KINDS[spec.kind].unit != "choice":
        return tuple(column(name) for name in spec.text)
    *names, endings = spec.text
    return *(column(name) for name in names), ending_values(endings, known, column)


def ending_values(name: str, known: Collection[str], column: Callable[[str], list[Any]]) -> list[Any]:
    """Of a column with lists of endings, or of those that `ending_columns` finds."""
    parts = ending_columns(name, known)
    if len(parts) == 1:
        return column(name)
    rows = zip(*map(column, parts), strict=True)
    kept = map(_without_blanks, rows)
    return [{"label": list(parts[: len(texts)]), "text": texts} for texts in kept]


def ending_columns(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The column `name`; or where there is none, those whose names stand in it with commas between, or are it with a number or a letter
    behind, `ending0`, `ending1`; the name itself where these are not two at least."""
    if name in known:
        return (name,)
    listed = tuple(part.strip() for part in name.split(","))
    if len(listed) > 1:
        return listed
    behind = re.compile(rf"{re.escape(name)}([ _-]?\d+|[ _-][A-Za-z]|[A-Z])")
    found = {other: match[1].strip(" _-") for other in known if (match := behind.fullmatch(other))}
    parts = sorted(found, key=lambda other: (len(found[other]), found[other].upper()))
    return tuple(parts) if len(parts) > 1 else (name,)


def _without_blanks(texts: Sequence[Any]) -> list[Any]:
    """Without those at the end: questions may have fewer endings than others."""
    kept = list(texts)
    while kept and (kept[-1] is None or kept[-1] == ""):
        kept.pop()
    return kept
