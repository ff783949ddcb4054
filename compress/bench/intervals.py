"""Confidence intervals of medians and percentiles of times, and when to test whether they are narrow enough to stop measuring."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from ..stats.percentiles import CONFIDENCE, percentile_interval

FEWEST = 6  # the fewest values whose extremes enclose the median with 95% confidence: 1 - 2 · 0.5⁶ = .969
NARROW = 0.05  # half-width of an interval that is narrow enough, as a fraction of the median
_WIDER = 1.5
_GROWTH = 4 / 3


def half_width(values: Sequence[float]) -> float | None:
    """Return the half-width of the 95% interval of the median of `values`, as a fraction of the median; None for fewer than `FEWEST`
    values or a median of 0.

    The distribution-free interval of order statistics is made half as wide again: it assumes independent values, and successive times
    may be correlated.
    """
    ends = percentile_interval(values, 0.5)
    middle = float(np.median(values)) if ends else 0.0
    return _WIDER * (ends[1] - ends[0]) / 2 / middle if ends and middle > 0 else None


def factor_of_starts(values: Sequence[float]) -> float:
    """Return the factor f of the 95% interval [mean / f, mean · f] of the mean over starts, from `values`, one per start.

    Student's interval of the mean of the logarithms, so it is relative and never reaches below 0. 1 for a single start.
    """
    from scipy.stats import t

    if len(values) < 2:
        return 1.0
    spread = float(np.std(np.log(values), ddof=1)) / len(values) ** 0.5
    return float(np.exp(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * spread))


def interval_over_starts(starts: Sequence[Sequence[float]], share: float) -> tuple[float, float] | None:
    """Return the 95% interval of a percentile of the times of several starts of a process; None if there are too few times in total.

    At each end, the wider of two intervals: that of order statistics of all values, for the variation within a start, and that by
    `factor_of_starts` of each start's own percentile, for the variation between starts.
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
    """Whether to test for convergence after this many rounds: 6, 8, 11, 14, 19, …, each a third more than the last, because every
    test is another chance to stop by luck."""
    number = round(log(max(rounds, 1) / FEWEST, _GROWTH))
    return number >= 0 and rounds == round(FEWEST * _GROWTH**number)
