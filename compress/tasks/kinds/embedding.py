"""A vector for each text; the cosine of a pair's two vectors is compared with a similarity score.

Outputs are [pair, 1 + 2 · width]: the cosine, the vector of the first text and that of the second, both of length 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import CompressError
from ...spec.task import TaskSpec
from ..reading.columns import Rows
from .kind import ConstantBaseline, FidelityMeasures, TaskKind
from .regression import REGRESSION

NEAREST = 10
MOST_QUERIES = (
    4096  # most texts whose neighbours are searched, so that the time grows with the number of texts, not its square
)
_AT_ONCE = 1 << 22  # cosines in memory at a time: 32 MB


def pair_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return float32 [pair, 1 + 2 · width] from `vectors` [text, width] of all first texts, then all second ones."""
    first, second = np.split(np.asarray(vectors, np.float32), 2)
    return np.concatenate([_cosines(first, second)[:, None], first, second], axis=1)


def vectors_of(outputs: np.ndarray) -> np.ndarray:
    """Return [text, width]: the vectors of all first texts, then of all second ones."""
    return np.concatenate(np.split(outputs[:, 1:], 2, axis=1))


def _cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return cosines [row] of vectors of length 1."""
    return np.einsum("nd,nd->n", one, other)


def _divergence(fp32: np.ndarray, other: np.ndarray) -> float:
    """Return 1 minus the cosine of each text's two vectors, the mean over texts."""
    return float(1 - _cosines(*(vectors_of(each).astype(np.float64) for each in (fp32, other))).mean())


def _similarity(fp32: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    one, two = (vectors_of(each).astype(np.float64) for each in (fp32, other))
    cosines = np.clip(_cosines(one, two), -1, 1)
    return {
        "mean_cosine": float(cosines.mean()),
        "worst_cosine": float(cosines.min()),
        "nearest_kept": nearest_kept(one, two),
    }


def nearest_kept(one: np.ndarray, two: np.ndarray) -> float:
    """Return the share of a text's `NEAREST` nearest other texts by `one` [text, width] that are also nearest by `two`, the mean over
    texts, or over `MOST_QUERIES` evenly chosen ones if there are more. With at most `NEAREST` other texts, it is 1. Repeated texts (equal
    vectors in `one`) count once."""
    _, rows = np.unique(one, axis=0, return_index=True)
    one, two, count = one[rows], two[rows], min(NEAREST, len(rows) - 1)
    if count < 1:
        return 1.0
    queries = np.unique(np.linspace(0, len(one) - 1, min(MOST_QUERIES, len(one))).astype(np.int64))
    step, shared = max(1, _AT_ONCE // len(one)), 0
    for start in range(0, len(queries), step):
        neighbours = [_nearest(each, queries[start : start + step], count) for each in (one, two)]
        shared += sum(len(set(before) & set(after)) for before, after in zip(*neighbours, strict=True))
    return shared / (count * len(queries))


def _nearest(vectors: np.ndarray, rows: np.ndarray, count: int) -> list[list[int]]:
    """Return the numbers of the nearest `count` others of each text in `rows`."""
    cosines = vectors[rows] @ vectors.T
    cosines[np.arange(len(rows)), rows] = -np.inf
    return np.argpartition(-cosines, count - 1, axis=1)[:, :count].tolist()


def drop_unrated(spec: TaskSpec, rows: Rows) -> Rows:
    """Return `rows` without pairs that have no score, with a note on their number. Raises `CompressError` if none has one."""
    kept = [row for row, score in enumerate(rows.labels) if not is_blank(score)]
    if len(kept) == len(rows):
        return rows
    if not kept:
        raise CompressError(f"{rows.place}: no pair has a score to measure vectors by; is it the right column?")
    columns = tuple([texts[row] for row in kept] for texts in rows.texts)
    numbers, labels = [rows.numbers[row] for row in kept], [rows.labels[row] for row in kept]
    note = unscored_note(len(rows) - len(kept), len(rows))
    return replace(rows, numbers=numbers, texts=columns, labels=labels, notes=(*rows.notes, note))


def unscored_note(blank: int, pairs: int) -> str:
    return f"{blank:,} of {pairs:,} pairs have no score, and are left out"


def is_blank(score: Any) -> bool:
    return score is None or (isinstance(score, str) and not score.strip())


EMBEDDING: TaskKind = replace(
    REGRESSION,
    labels=replace(REGRESSION.labels, prepare=drop_unrated, description="a vector"),
    constant_baseline=ConstantBaseline(
        outputs=lambda train, names, gold: np.ones(1, np.float32), description="one vector for all texts"
    ),
    output_count=lambda names: None,
    fidelity=FidelityMeasures(divergence=_divergence, similarity=_similarity),
    ensemble=None,
)
