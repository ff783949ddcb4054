"""Which words each copy of an example replaces, and by which of their candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Draws:
    """bool [copy, word]: is it replaced; float64 [copy, word] in [0, 1): by which share of its candidates."""

    replaced: np.ndarray
    share: np.ndarray


def draw(seed: int, example: int, *, copies: int, words: int, probability: float) -> Draws:
    """Those of one example. They depend on nothing but the arguments: neither other examples nor candidates."""
    rng = np.random.default_rng([seed % 2**64, example])
    return Draws(rng.random((copies, words)) < probability, rng.random((copies, words)))


def pick(candidates: np.ndarray, share: float) -> int:
    """The candidate at `share` of those there are (-1 marks missing ones at the end); -1 when there are none."""
    count = int((candidates >= 0).sum())
    return int(candidates[int(share * count)]) if count else -1
