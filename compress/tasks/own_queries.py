"""Files of queries and passages: whether they are those of a ranking, where nobody says so."""

from __future__ import annotations

from collections.abc import Sequence

from .number_texts import is_number
from .tables import Table

QUERY, PASSAGE = "query", "passage"  # columns
RELEVANCES = ("relevance", "score")  # of labels


def ranks(table: Table, texts: Sequence[str], label: str) -> bool:
    """Whether the columns of texts are called those of queries and passages, the labels are numbers, and some query has passages of
    different ones. A number below 0 is refused as a ranking's, by its line."""
    if tuple(texts) != (QUERY, PASSAGE) or label not in table.columns:
        return False
    values = table.columns[label]
    if not all(not isinstance(value, bool) and is_number(str(value)) for value in values):
        return False
    relevances: dict[str, set[float]] = {}
    for query, value in zip(map(str, table.columns[QUERY]), values, strict=True):
        relevances.setdefault(query, set()).add(float(value))
    return any(len(found) > 1 for found in relevances.values())
