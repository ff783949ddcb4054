"""Which times are shown first, and when the machine counts as busy."""

from __future__ import annotations

import pytest

from compress.results import Latency, Runtime
from compress.results.timing import doubts, headline, uses_cpu_time

SHAPES = [(1, 32)]


def latency(
    *, wall: float = 1.0, cpu: float | None = 1.0, speedup: float = 1.0, cpu_speedup: float | None = 1.0
) -> Latency:
    times = {"p50": wall, "p90": wall, "p99": wall, "examples_per_second": 1000 / wall, "runs": 30}
    return Latency(batch=1, length=32, **times, speedup=speedup, cpu_p50=cpu, cpu_speedup=cpu_speedup)


def runtime(*rows: Latency, threads: int = 1) -> Runtime:
    return Runtime(latency=rows, peak_memory_bytes=1, load_ms=1, threads=threads)


def test_cpu_time_is_the_headline_of_one_thread_alone() -> None:
    row = latency(wall=3, cpu=2, speedup=9.7, cpu_speedup=2.73)
    assert uses_cpu_time([runtime(row)])
    assert not uses_cpu_time([runtime(row), runtime(row, threads=2)])
    assert not uses_cpu_time([runtime(latency(cpu=None, cpu_speedup=None))])
    assert headline(row, cpu=True) == (2, 2.73)
    assert headline(row, cpu=False) == (3, 9.7)


def test_a_quiet_machine_is_not_doubted() -> None:
    verdict = doubts([latency(speedup=1.05, cpu_speedup=0.97)], [runtime(latency(wall=1.08))])
    assert verdict.warning(SHAPES, cpu=True) is None
    assert verdict.warning(SHAPES, cpu=False) is None


@pytest.mark.parametrize("ratio", [1.63, 1 / 1.63])
def test_a_control_in_wall_time_that_is_off_leaves_cpu_time(ratio: float) -> None:
    verdict = doubts([latency(speedup=ratio)], [runtime(latency())])
    assert not verdict.of_headline(cpu=True)
    assert f"{ratio:.2f} at 1 × 32" in str(verdict.warning(SHAPES, cpu=True))
    assert "trust CPU time, not wall time" in str(verdict.warning(SHAPES, cpu=True))
    assert "trust no time" in str(verdict.warning(SHAPES, cpu=False))


def test_wall_time_far_beyond_cpu_time_is_told() -> None:
    verdict = doubts([latency()], [runtime(latency()), runtime(latency(wall=3.6))])
    assert "wall time over CPU time is 3.60 at 1 × 32" in str(verdict.warning(SHAPES, cpu=True))
    assert not verdict.of_headline(cpu=True)
    assert verdict.of_headline(cpu=False)


def test_of_several_threads_wall_time_may_differ_from_cpu_time() -> None:
    assert doubts([latency()], [runtime(latency(wall=0.55), threads=2)]).warning(SHAPES, cpu=False) is None


def test_a_control_in_cpu_time_that_is_off_leaves_nothing() -> None:
    verdict = doubts([latency(cpu_speedup=1.2)], [runtime(latency())])
    assert verdict.of_headline(cpu=True)
    assert "trust no time" in str(verdict.warning(SHAPES, cpu=True))


def test_only_the_shapes_that_are_off_are_doubted() -> None:
    other = latency().model_copy(update={"length": 128})
    verdict = doubts([latency(cpu_speedup=1.2), other], [runtime(latency(), other)])
    assert list(verdict.of_headline(cpu=True)) == [(1, 32)]
    assert verdict.warning([(1, 128)], cpu=True) is None
