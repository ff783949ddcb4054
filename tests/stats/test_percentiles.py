"""Percentiles and the runs that they need, on values with a known distribution."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

from compress.results import Latency
from compress.stats.percentiles import has_interval, percentile_interval, ranks


@pytest.mark.parametrize(("share", "fewest"), [(0.5, 6), (0.9, 36), (0.99, 368)])
def test_an_interval_needs_so_many_values(share: float, fewest: int) -> None:
    assert not has_interval(fewest - 1, share)
    assert ranks(fewest - 1, share) is None
    assert percentile_interval([1.0] * (fewest - 1), share) is None
    assert has_interval(fewest, share)
    places = ranks(fewest, share)
    assert places is not None
    assert places[1] == fewest  # the largest value is the upper end


@pytest.mark.parametrize(("count", "share"), [(6, 0.5), (20, 0.5), (36, 0.9), (57, 0.9), (200, 0.9), (368, 0.99)])
def test_the_ends_are_the_innermost_that_hold_the_percentile(count: int, share: float) -> None:
    def below(most: int) -> float:
        """Return the probability that at most `most` values are below the percentile, from the binomial's definition."""
        return sum(comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(most + 1))

    places = ranks(count, share)
    assert places is not None
    low, high = places
    assert below(low - 1) <= 0.025 < below(low)
    assert 1 - below(high - 1) <= 0.025 < 1 - below(high - 2)


@pytest.mark.parametrize(("count", "share"), [(12, 0.5), (100, 0.9), (1024, 0.99)])
def test_the_interval_holds_the_percentile_of_a_known_distribution(count: int, share: float) -> None:
    """For exponential times the quantile is -log(1 - share)."""
    generator, truth, trials = np.random.default_rng(0), -np.log(1 - share), 1000
    held = 0
    for _ in range(trials):
        ends = percentile_interval(generator.exponential(size=count).tolist(), share)
        assert ends is not None
        held += ends[0] <= truth <= ends[1]
    assert 0.94 * trials <= held < trials  # at least 95%, with slack for chance; and not the interval of everything


@pytest.mark.parametrize(
    ("runs", "known"), [(35, (None, None)), (36, (3.0, None)), (367, (3.0, None)), (368, (3.0, 4.0))]
)
def test_a_record_has_no_percentile_that_its_runs_do_not_say(
    runs: int, known: tuple[float | None, float | None]
) -> None:
    times: dict[str, Any] = {"p50": 2.0, "p90": 3.0, "p99": 4.0, "examples_per_second": 500.0, "speedup": 1.0}
    row = Latency(batch=1, length=8, **times, runs=runs)
    assert (row.p90, row.p99) == known
    assert Latency.model_validate_json(row.model_dump_json()) == row
