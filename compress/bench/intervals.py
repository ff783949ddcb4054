"""How well a median over rounds is known, and when that is well enough to stop measuring."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from ..percentiles import LEVEL, percentile_interval

FEWEST = 6  # values whose extremes hold the median 95 times in 100: 1 - 2 · 0.5⁶ = .969
NARROW = 0.05  # half of an interval that is narrow enough, in parts of the median
_WIDER = 1.5
_GROWTH = 4 / 3


def half_width(values: Sequence[float]) -> float | None:
    """Half of the 95% interval of the median of `values`, in parts of it; None: fewer than `FEWEST` values, or a median of 0.

    It is meant on both sides of the median. The interval of order statistics, for which times need no distribution, is made half
    as wide again: it takes values for independent, and neighbours may be alike.
    """
    ends = percentile_interval(values, 0.5)
    middle = float(np.median(values)) if ends else 0.0
    return _WIDER * (ends[1] - ends[0]) / 2 / middle if ends and middle > 0 else None


def factor_of_starts(values: Sequence[float]) -> float:
    """How far the mean over all starts may be from that of these `values`, one for each start: times or over this factor, at 95%.

    Student's interval of the mean of their logarithms, so that it is in parts and never below 0. 1 where there is one start.
    """
    from scipy.stats import t

    if len(values) < 2:
        return 1.0
    spread = float(np.std(np.log(values), ddof=1)) / len(values) ** 0.5
    return float(np.exp(t.ppf((1 + LEVEL) / 2, len(values) - 1) * spread))


def interval_over_starts(starts: Sequence[Sequence[float]], share: float) -> tuple[float, float] | None:
    """The 95% interval of a percentile of times that several starts of a process had; None where all of them are too few.

    Of the interval of order statistics of all values and `factor_of_starts` of each start's own percentile, what reaches further:
    the first knows how values differ within a start, the second how starts do.
    """
    values = [value for start in starts for value in start]
    ends = percentile_interval(values, share)
    if ends is None:
        return None
    middle, factor = quantile(values, share), factor_of_starts([quantile(start, share) for start in starts])
    return min(ends[0], middle / factor), max(ends[1], middle * factor)


def quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share))


def is_check(rounds: int) -> bool:
    """Whether after so many rounds it is asked if they are enough: 6, 8, 11, 14, 19, …, a third more each time, for each look
    is one more chance to stop by luck."""
    number = round(log(max(rounds, 1) / FEWEST, _GROWTH))
    return number >= 0 and rounds == round(FEWEST * _GROWTH**number)
