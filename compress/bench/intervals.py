"""How well a median over rounds is known, and when that is well enough to stop measuring."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb, log

import numpy as np

LEVEL = 0.95
FEWEST = 6  # values whose extremes hold the median 95 times in 100: 1 - 2 · 0.5⁶ = .969
NARROW = 0.05  # half of an interval that is narrow enough, in parts of the median
_WIDER = 1.5
_GROWTH = 4 / 3


def half_width(values: Sequence[float]) -> float | None:
    """Half of the 95% interval of the median of `values`, in parts of it; None: fewer than `FEWEST` values, or a median of 0.

    It is meant on both sides of the median. The interval of order statistics, for which times need no distribution (David &
    Nagaraja 2003, Order Statistics, section 7.1), is made half as wide again: it takes values for independent, and
    neighbours may be alike.
    """
    rank, ordered = _rank(len(values)), sorted(values)
    middle = float(np.median(ordered)) if ordered else 0.0
    if not rank or middle <= 0:
        return None
    return _WIDER * (ordered[-rank] - ordered[rank - 1]) / 2 / middle


def is_check(rounds: int) -> bool:
    """Whether after so many rounds it is asked if they are enough: 6, 8, 11, 14, 19, …, a third more each time, for each look
    is one more chance to stop by luck."""
    number = round(log(max(rounds, 1) / FEWEST, _GROWTH))
    return number >= 0 and rounds == round(FEWEST * _GROWTH**number)


@cache
def _rank(count: int) -> int:
    """The largest k so that the k-th least and the k-th largest of `count` independent values hold the median at `LEVEL`; 0: none."""
    rank, tail = 0, 0.5**count
    while tail <= (1 - LEVEL) / 2:
        rank += 1
        tail += comb(count, rank) * 0.5**count
    return rank
