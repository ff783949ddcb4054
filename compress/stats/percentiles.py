"""Percentiles of independent values, with distribution-free intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

CONFIDENCE = 0.95  # of every interval


def has_interval(count: int, share: float) -> bool:
    """Whether `count` values are enough for a two-sided interval of the percentile with `share` of all values below it: 6
    for the median, 36 for 0.9, 368 for 0.99."""
    return max(share, 1 - share) ** count <= (1 - CONFIDENCE) / 2


@cache
def ranks(count: int, share: float) -> tuple[int, int] | None:
    """Return which of `count` ordered values, from 1, are the ends of the percentile's interval at `CONFIDENCE`; None for too
    few.

    The number of values below the percentile is binomial. The percentile is beyond each end in at most 2.5% of cases (David
    & Nagaraja 2003, Order Statistics, section 7.1).
    """
    if not has_interval(count, share):
        return None
    import numpy as np
    from scipy.special import bdtr  # scipy.stats has the quantile, and takes half a second to import

    at_most = bdtr(np.arange(count + 1), count, share)
    low, high = np.searchsorted(at_most, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return max(int(low), 1), min(int(high) + 1, count)


def percentile_interval(values: Sequence[float], share: float) -> tuple[float, float] | None:
    """Return the two ordered values that enclose the percentile, in the unit of `values`; None if there are too few."""
    places = ranks(len(values), share)
    if places is None:
        return None
    ordered = sorted(values)
    return ordered[places[0] - 1], ordered[places[1] - 1]
