"""Summarize the times of a shape as one row of the results."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from .intervals import factor_of_starts, half_width, interval_over_starts, quantile
from .process import Times
from .spec import Shape

if TYPE_CHECKING:
    from ..results import Latency

Starts = Sequence[Sequence[Times]]  # times of one model: a list per start of its process, an entry per round


def latency(shape: Shape, times: Starts, baseline: Starts, *, on_cpu: bool) -> Latency:
    """Return the figures of all starts pooled; `on_cpu`: half-widths of CPU time instead of wall-clock time."""
    from ..results import Latency

    walls = [[one.wall for one in start] for start in times]
    pooled = [one for start in times for one in start]
    wall, cpu = np.array(pooled).T
    p50, cpu_p50 = float(np.median(wall)), float(np.median(cpu))
    base, cpu_base = np.median(np.array([one for start in baseline for one in start]), axis=0)
    p50_half, speedup_half = half_widths(times, baseline, on_cpu=on_cpu)
    return Latency(
        batch=shape[0],
        length=shape[1],
        p50=p50,
        p90=quantile(wall.tolist(), 0.9),
        p99=quantile(wall.tolist(), 0.99),
        p50_interval=interval_over_starts(walls, 0.5),
        p90_interval=interval_over_starts(walls, 0.9),
        p99_interval=interval_over_starts(walls, 0.99),
        examples_per_second=1000 * max(1, shape[0]) * len(pooled) / float(wall.sum()),
        speedup=float(base) / p50,
        runs=len(pooled),
        starts=len(times),
        cpu_p50=cpu_p50,
        cpu_speedup=float(cpu_base) / cpu_p50 if cpu_p50 and cpu_base else None,  # a coarse CPU clock may read 0
        half_width=p50_half,
        speedup_half_width=speedup_half,
    )


def widest(times: Sequence[Sequence[Times]], baseline: Sequence[Times], *, on_cpu: bool) -> float:
    """Return the largest half-width of the p50 and speedups of all models in one start; infinity if any is None."""
    widths = [width for values in times for width in half_widths([values], [baseline], on_cpu=on_cpu)]
    return max(inf if width is None else width for width in widths)


def half_widths(times: Starts, baseline: Starts, *, on_cpu: bool) -> tuple[float | None, float | None]:
    """Return the half-widths of the p50 and of the round-by-round ratio to the baseline."""
    model_times, baseline_times = (
        [[one.cpu if on_cpu else one.wall for one in start] for start in each] for each in (times, baseline)
    )
    if min(map(min, model_times)) <= 0 or min(map(min, baseline_times)) <= 0:  # a coarse CPU clock may read 0
        return None, None
    ratios = [[b / m for m, b in zip(*start, strict=True)] for start in zip(model_times, baseline_times, strict=True)]
    return _over_starts(model_times), _over_starts(ratios)


def _over_starts(starts: Sequence[Sequence[float]]) -> float | None:
    """Return the half-width within starts or between them, whichever is larger."""
    within = half_width([value for start in starts for value in start])
    between = factor_of_starts([float(np.median(start)) for start in starts]) - 1
    return None if within is None else max(within, between)
