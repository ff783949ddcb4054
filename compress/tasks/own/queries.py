"""Detect files of queries and passages for ranking."""

from __future__ import annotations

from collections.abc import Sequence

from ...files.tabular import is_number
from ..reading.number_texts import relevance_of
from ..reading.tables import Table

QUERY, PASSAGES = "query", ("passage", "document", "doc")  # columns
RELEVANCES = ("relevance", "score")  # of labels


def ranks(table: Table, texts: Sequence[str], label: str) -> bool:
    """Whether text columns have usual names, labels are numbers, or true and false, and some query has passages with different ones.
    Negative numbers are reported later, with their line."""
    if len(texts) != 2 or texts[0] != QUERY or texts[1] not in PASSAGES or label not in table.columns:
        return False
    values = list(map(relevance_of, table.column(label)))
    if not all(is_number(str(value)) for value in values):
        return False
    relevances: dict[str, set[float]] = {}
    for query, value in zip(map(str, table.columns[QUERY]), values, strict=True):
        relevances.setdefault(query, set()).add(float(value))
    return any(len(grades) > 1 for grades in relevances.values())
