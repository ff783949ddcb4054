"""A vector for each text: the cosine of a pair's two is held against a score of how alike they are.

Outputs are [pair, 1 + 2 · width]: the cosine, the vector of the first text and that of the second, both of length 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .kind import TaskKind
from .regression import REGRESSION

NEAREST = 10
_AT_ONCE = 1024  # rows of cosines held at a time


def paired(vectors: np.ndarray) -> np.ndarray:
    """float32 [pair, 1 + 2 · width], of the `vectors` [text, width] of all first texts and then all second ones."""
    first, second = np.split(np.asarray(vectors, np.float32), 2)
    return np.concatenate([_cosines(first, second)[:, None], first, second], axis=1)


def vectors_of(outputs: np.ndarray) -> np.ndarray:
    """[text, width]: those of all first texts and then those of all second ones."""
    return np.concatenate(np.split(outputs[:, 1:], 2, axis=1))


def _cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[row], of vectors of length 1."""
    return np.einsum("nd,nd->n", one, other)


def _divergence(fp32: np.ndarray, other: np.ndarray) -> float:
    """1 less the cosine of each text's two vectors, a text's mean."""
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
    """The share of each text's `NEAREST` nearest other texts by `one` [text, width] that are so by `two`, a text's mean; of fewer
    texts all others are as near by either. A text that stands more than once counts once, with its first vector by `one`."""
    _, rows = np.unique(one, axis=0, return_index=True)
    one, two, count = one[rows], two[rows], min(NEAREST, len(rows) - 1)
    if count < 1:
        return 1.0
    shared = 0
    for start in range(0, len(one), _AT_ONCE):
        found = [_nearest(each, start, count) for each in (one, two)]
        shared += sum(len(set(mine) & set(theirs)) for mine, theirs in zip(*found, strict=True))
    return shared / (count * len(one))


def _nearest(vectors: np.ndarray, start: int, count: int) -> list[list[int]]:
    """Of the texts from `start` on, as many as are held at a time: the nearest `count` others, by number."""
    cosines = vectors[start : start + _AT_ONCE] @ vectors.T
    cosines[np.arange(len(cosines)), start + np.arange(len(cosines))] = -np.inf
    return np.argpartition(-cosines, count - 1, axis=1)[:, :count].tolist()


EMBEDDING: TaskKind = replace(
    REGRESSION,
    constant=lambda train, names, gold: np.ones(1, np.float32),
    constant_words="one vector for all texts",
    label_words="a vector",
    divergence=_divergence,
    mean=None,
    width=lambda names: None,
    similarity=_similarity,
)
