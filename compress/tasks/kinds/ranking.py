"""How relevant a passage is to a query; ranks the passages of each query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import CompressError, brief
from ...metrics import RanksHeadline
from ...metrics.ranks import best_passages, queries_of, scored_queries
from ...spec.task import TaskSpec
from ..reading.columns import Rows
from ..reading.number_texts import relevance_of
from ..reading.tables import refuse
from .kind import ConstantBaseline, Labels, Names, Scoring, TaskKind
from .regression import REGRESSION, read_scores


def _read(rows: Rows, names: Names) -> np.ndarray:
    """Return float64 [pair, 2]: the relevance, and the number of the query, from 0 in order of first occurrence."""
    rows = replace(rows, labels=list(map(relevance_of, rows.labels)))
    relevance = read_scores(rows, "relevance")
    wrong = np.flatnonzero(relevance < 0).tolist()
    problems = [(rows.numbers[i], f"expected a relevance of at least 0, found {brief(rows.labels[i])}") for i in wrong]
    refuse(rows.place, rows.unit, problems)
    if len(rows) and not relevance.any():
        raise CompressError(
            f"{rows.place}: no passage has a relevance above 0: nothing can be learnt or scored; is it the right column?"
        )
    known: dict[Any, int] = {}
    queries = [known.setdefault(query, len(known)) for query in rows.texts[0]]
    return np.column_stack([relevance, queries]).astype(np.float64)


def add_notes(spec: TaskSpec, rows: Rows) -> Rows:
    """Return `rows` with notes on how many queries there are, and how many of them have no relevant passage."""
    try:
        gold = _read(rows, ()) if all(isinstance(query, str) for query in rows.texts[0]) else None
    except CompressError:
        gold = None
    if gold is None:
        return rows  # invalid values are reported with their lines by later checks
    counted = f"{len(gold):,} passages of {len(queries_of(gold)):,} queries"
    return replace(rows, notes=(*rows.notes, counted, *left_out(gold)))


def left_out(gold: np.ndarray) -> list[str]:
    """Return a note on queries without a relevant passage, if there are any."""
    queries, scored = len(queries_of(gold)), len(scored_queries(gold))
    if scored == queries:
        return []
    return [
        f"{queries - scored:,} of {queries:,} queries have no passage with a relevance above 0, and are left out of scores"
    ]


def varied_queries(labels: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each query that has passages of different relevance."""
    return [rows for rows in queries_of(labels) if len(np.unique(labels[rows, 0])) > 1]


def copied_groups(labels: np.ndarray, sources: np.ndarray, copy: np.ndarray) -> np.ndarray:
    """Return labels of copies; each copy of a query's passages, or a question's endings, is a new query or question."""
    copies = labels[sources]
    copies[:, 1] += (copy + 1) * (labels[:, 1].max() + 1)
    return copies


def _query_flips(fp32: np.ndarray, other: np.ndarray, gold: np.ndarray) -> tuple[int, int]:
    first, second = (best_passages(outputs, gold) for outputs in (fp32, other))
    return int((first != second).sum()), len(first)


RANKING: TaskKind = replace(
    REGRESSION,
    labels=Labels(
        prepare=add_notes,
        read=_read,
        description="how relevant the second text is to the first",
        format=lambda label, names: float(label[0]),
        vary=lambda labels: len(varied_queries(labels)) > 0,
        unvaried_error="no query has passages of different relevance; training needs some, such as one passage of 1 and "
        "others of 0 per query",
        copied=copied_groups,
    ),
    scoring=Scoring(headline=lambda metrics, positive, names: RanksHeadline(metrics)),
    constant_baseline=ConstantBaseline(
        outputs=lambda train, names, gold: np.zeros(1), description="giving all passages the same score"
    ),
    stored=replace(
        REGRESSION.stored,
        from_outputs=lambda outputs: np.column_stack([outputs[:, 0], np.zeros(len(outputs))]),  # of the shape of gold
        to_outputs=lambda stored, names: stored[:, :1],
        fits=lambda array, names: array.ndim == 2 and array.shape[1] == 2,
    ),
    fidelity=replace(REGRESSION.fidelity, query_flips=_query_flips),
)
