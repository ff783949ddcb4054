"""The best candidates among the words of a vocabulary, the word to be replaced left out."""

from __future__ import annotations

import numpy as np

SPARE = 3  # a vocabulary holds a word in at most so many cases: word, Word, WORD
NONE = -1


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """Columns of the `count` highest scores of every row, best first: int32 [row, count]."""
    count = min(count, scores.shape[1])
    part = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(scores, part, 1), axis=1, kind="stable")
    return np.take_along_axis(part, order, 1).astype(np.int32)


def without_itself(ranked: np.ndarray, fold: np.ndarray, own: np.ndarray, count: int) -> np.ndarray:
    """The first `count` of every row of `ranked` (int32 [row, more], -1 for none) but the row's own word in any case.

    `fold` (int32 [word]) numbers words whatever their case, `own` (int32 [row]) is that of the word to be replaced.
    int32 [row, count], -1 where there are no more.
    """
    kept = (ranked >= 0) & (fold[ranked] != own[:, None])
    order = np.argsort(~kept, axis=1, kind="stable")[:, :count]
    chosen = np.where(np.take_along_axis(kept, order, 1), np.take_along_axis(ranked, order, 1), NONE)
    missing = count - chosen.shape[1]
    return np.pad(chosen, ((0, 0), (0, missing)), constant_values=NONE).astype(np.int32)
