"""benchmarks/cores.py: Amdahl's law, and a queue against known results."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    return importlib.import_module("cores")


def test_threads_share_a_part_of_the_work(cores: Any) -> None:
    assert cores.answer_ms(10, 5, 8) == pytest.approx(10 / 8), "all of it is shared"
    assert cores.answer_ms(10, 10, 8) == pytest.approx(10), "nothing is"
    assert [cores.answer_ms(10, 7, threads) for threads in (1, 2)] == [pytest.approx(10), pytest.approx(7)]
    assert cores.answer_ms(10, 7, 4) == pytest.approx(10 * (0.4 + 0.6 / 4))
    assert cores.answer_ms(10, 12, 2) == pytest.approx(12), "a second thread may cost time"
    with pytest.raises(ValueError, match="twice"):
        cores.answer_ms(10, 4.9, 2)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_one_worker_is_a_queue_with_a_constant_service_time(load: float, cores: Any) -> None:
    """Its mean wait is load * service / (2 * (1 - load)), by Pollaczek and Khinchine."""
    service = 4.0
    waits = cores.waits(1, service, load / service, 300_000, seed=3)
    assert waits.min() == pytest.approx(service)
    assert np.mean(waits) - service == pytest.approx(load * service / (2 * (1 - load)), rel=0.05)


def test_as_many_workers_as_requests_make_nobody_wait(cores: Any) -> None:
    assert cores.waits(50, 2.0, 1.0, 50) == pytest.approx(np.full(50, 2.0))


def test_two_workers_in_turn_answer_in_the_order_of_arrival(cores: Any) -> None:
    """Compared with an explicit queue: the k-th request takes the worker that is free first."""
    rate, service = 1.5, 1.0
    arrivals = np.cumsum(np.random.default_rng(7).exponential(1 / rate, 400))
    ends: list[float] = []
    for number, arrival in enumerate(arrivals):
        start = max(arrival, ends[number - 2]) if number >= 2 else arrival
        ends.append(start + service)
    assert cores.waits(2, service, rate, 400, seed=7) == pytest.approx(np.array(ends) - arrivals)
