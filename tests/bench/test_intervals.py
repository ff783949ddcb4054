"""When to stop measuring: on synthetic series with a known median."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from compress.bench.intervals import FEWEST, NARROW, half_width, is_check

pytestmark = pytest.mark.end_to_end

MOST = 30


def stopping_point(times: np.ndarray) -> int:
    """Return the number of values after which the measurement of one model ends."""
    enough = (n for n in range(FEWEST, len(times)) if is_check(n) and (half_width(times[:n].tolist()) or 1) <= NARROW)
    return next(enough, len(times))


def independent(generator: np.random.Generator, spread: float) -> np.ndarray:
    return np.exp(spread * generator.normal(size=MOST))


def autoregressive(generator: np.random.Generator, spread: float) -> np.ndarray:
    """Return times with autocorrelation .3: neighbours are slow or fast together."""
    noise = generator.normal(size=MOST)
    for place in range(1, MOST):
        noise[place] = 0.3 * noise[place - 1] + np.sqrt(1 - 0.3**2) * noise[place]
    return np.exp(spread * noise)


def skewed(generator: np.random.Generator, spread: float) -> np.ndarray:
    """Return a minimum time plus delays, as from interrupts; the median is 1."""
    return 1 + spread * (generator.exponential(size=MOST) - np.log(2))


def test_checks_are_a_third_further_apart_each_time() -> None:
    assert [rounds for rounds in range(70) if is_check(rounds)] == [6, 8, 11, 14, 19, 25, 34, 45, 60]


def test_the_interval_is_of_order_statistics_half_as_wide_again() -> None:
    assert half_width([1, 2, 3, 4, 5]) is None  # the extremes of 5 contain the median 94 times in 100
    assert half_width([7, 10, 10, 10, 10, 11]) == pytest.approx(1.5 * 4 / 2 / 10)
    # Of 20 values the 6th least and the 6th largest (David & Nagaraja, table 7.1).
    assert half_width(list(range(101, 121))) == pytest.approx(1.5 * (115 - 106) / 2 / 110.5)
    assert half_width([0.0] * 8) is None  # the clock is too coarse


def test_quiet_times_end_at_once_and_noisy_ones_never() -> None:
    generator = np.random.default_rng(0)
    assert {stopping_point(independent(generator, 0.005)) for _ in range(100)} == {FEWEST}
    assert {stopping_point(independent(generator, 0.3)) for _ in range(100)} == {MOST}


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.06, 0.1])
@pytest.mark.parametrize("series", [independent, autoregressive, skewed])
def test_where_a_measurement_ends_its_interval_still_holds_the_median(
    series: Callable[[np.random.Generator, float], np.ndarray], spread: float
) -> None:
    generator = np.random.default_rng(0)
    held, trials = 0, 1000
    for _ in range(trials):
        times = series(generator, spread)
        times = times[: stopping_point(times)]
        width = half_width(times.tolist())
        assert width is not None
        held += abs(np.median(times) - 1) <= width * np.median(times)
    assert held >= 0.93 * trials
