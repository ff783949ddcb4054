"""Rigorous measurements with planted times: when they stop, and the effect of process starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress.bench import AGAIN, RIGOR, BenchSpec, Candidate, Rigor, measure
from compress.bench.intervals import factor_of_starts, interval_over_starts
from compress.bench.process import Times
from compress.errors import CompressError
from compress.results import Latency, Runtime
from compress.results.timing import too_noisy

pytestmark = pytest.mark.end_to_end

TWO = [Candidate("slow", Path("a"), "onnx"), Candidate("fast", Path("b"), "onnx")]


class Planted:
    """A process whose runs take `milliseconds(name, start)`."""

    milliseconds: Callable[[str, int], float]
    started: list[str]
    ended: list[str]
    runs: list[tuple[str, int, tuple[int, ...]]]  # name, start, tokens of its texts; including untimed runs

    def __init__(self, candidate: Candidate, threads: int) -> None:
        self.candidate, self.name = candidate, candidate.name
        self.start = Planted.started.count(self.name)
        assert len(Planted.started) - len(Planted.ended) < 3  # the processes of the start before have ended
        Planted.started.append(self.name)

    def __enter__(self) -> Planted:
        return self

    def __exit__(self, *_: object) -> None:
        Planted.ended.append(self.name)

    def start_imports(self) -> None:
        pass

    def finish_imports(self) -> None:
        pass

    def load(self) -> tuple[float, str]:
        return (30.0, 10.0, 20.0, 20.0, 20.0)[self.start], "planted"

    def prepare(self, rows: list[int]) -> None: ...

    def peak_memory_bytes(self) -> int:
        return (1, 3, 2, 2, 2)[self.start]

    def warm(self, rows: list[int]) -> None:
        self.run(rows)

    def run(self, rows: list[int]) -> Times:
        Planted.runs.append((self.name, self.start, tuple(rows)))
        milliseconds = Planted.milliseconds(self.name, self.start)
        return Times(milliseconds, milliseconds)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> type[Planted]:
    Planted.started, Planted.ended, Planted.runs = [], [], []
    Planted.milliseconds = lambda name, start: 16.0 if name == "fast" else 32.0
    monkeypatch.setattr("compress.bench.latency.Child", Planted)
    monkeypatch.setattr("compress.bench.rounds.SECONDS_SINGLE", -1.0)  # the time limits of --runs do not apply
    monkeypatch.setattr("compress.bench.rounds.SECONDS_BATCH", -1.0)
    return Planted


def rows_of(spec: BenchSpec) -> dict[str, Latency]:
    Planted.started.clear()
    Planted.ended.clear()
    return {name: runtime.latency[0] for name, runtime in measure(TWO, spec).items()}


def counts(spec: BenchSpec) -> set[int]:
    return {row.runs for row in rows_of(spec).values()}


def test_the_levels_are_what_the_documentation_says() -> None:
    assert {"quick": Rigor(1024, 10.0, 3), "full": Rigor(24_576, 600.0, 5)} == RIGOR


def test_it_stops_at_the_query_and_at_the_second_that_are_enough(planted) -> None:
    one = BenchSpec(((1, 8),), warmup=0)
    assert counts(BenchSpec(one.shapes, warmup=0, rigor=Rigor(1024, 1.0, 3))) == {1024}
    # 2,048 runs of 16 ms are 32.768 s; the slower models have taken twice as long by then.
    assert counts(BenchSpec(one.shapes, warmup=0, rigor=Rigor(1024, 32.768, 3))) == {2048}
    assert counts(BenchSpec(one.shapes, warmup=0, rigor=Rigor(1024, 32.769, 3))) == {2049}


def test_batches_count_their_texts(planted) -> None:
    rows = rows_of(BenchSpec(((32, 8),), warmup=0, rigor=Rigor(1024, 0.1, 3)))
    assert {row.runs for row in rows.values()} == {32}
    assert rows["fast"].examples_per_second == 2000
    # One batch exceeds the required number of texts, but each start still has three rounds.
    assert counts(BenchSpec(((4096, 8),), warmup=0, rigor=Rigor(1024, 0.1, 3))) == {9}


def test_processes_are_started_anew_and_their_times_pooled(planted) -> None:
    planted.milliseconds = lambda name, start: (10.0, 20.0, 40.0)[start] / (2 if name == "fast" else 1)
    seen: list[tuple[str, int, int]] = []
    spec = BenchSpec(((1, 8), (2, 8)), warmup=2, rigor=Rigor(90, 0.01, 3))
    runtimes = measure(TWO, spec, lambda *progress: seen.append(progress))
    assert len(planted.started) == len(planted.ended) == 9
    assert [planted.started.count(name) for name in ("slow", "fast", AGAIN)] == [3, 3, 3]
    assert seen == [
        ("1 x 8, start 1 of 3", 0, 6),
        ("2 x 8, start 1 of 3", 1, 6),
        ("1 x 8, start 2 of 3", 2, 6),
        ("2 x 8, start 2 of 3", 3, 6),
        ("1 x 8, start 3 of 3", 4, 6),
        ("2 x 8, start 3 of 3", 5, 6),
        ("shapes timed", 6, 6),
    ]
    assert [planted.runs.count(("fast", start, (8,))) for start in range(3)] == [32, 32, 32]  # two are warm-up
    single, batch = runtimes["slow"].latency
    assert (single.runs, batch.runs, single.starts) == (90, 45, 3)
    assert (single.p50, single.p90, single.p99) == (20, 40, None)  # from the pooled times
    assert runtimes["fast"].latency[0].speedup == 2
    assert (runtimes["slow"].peak_memory_bytes, runtimes["slow"].load_ms) == (3, 20)


def test_own_lengths_go_round_over_all_starts(planted) -> None:
    measure(TWO, BenchSpec((), lengths=(1, 2, 3, 4), warmup=0, rigor=Rigor(40, 0.01, 3)))
    texts = [rows[0] for name, _, rows in planted.runs if name == "fast"]
    assert len(texts) == 40
    assert all(sorted(texts[place : place + 4]) == [1, 2, 3, 4] for place in range(0, 40, 4))


def test_the_spread_between_starts_is_in_the_intervals(planted) -> None:
    spec = BenchSpec(((1, 8),), warmup=0, rigor=Rigor(1200, 0.01, 3))
    even = rows_of(spec)["slow"]
    assert (even.p50_interval, even.half_width, even.speedup_half_width) == ((32, 32), 0, 0)
    assert even.p99_interval == (32, 32)

    # Each start is exact, and they differ by 2%: Student's 97.5% quantile for three is 4.303.
    planted.milliseconds = lambda name, start: 32 * 1.02 ** (start - 1) if name == "slow" else 32.0
    apart = rows_of(spec)
    factor = 1.02 ** (4.3026527 / 3**0.5)
    assert apart["slow"].p50 == 32
    assert apart["slow"].p50_interval == pytest.approx((32 / factor, 32 * factor))
    assert apart["slow"].half_width == pytest.approx(factor - 1)
    assert apart["fast"].half_width == 0
    assert apart["fast"].speedup_half_width == pytest.approx(factor - 1)  # the baseline's starts differ


def test_one_start_has_no_spread_of_starts() -> None:
    values = np.random.default_rng(0).exponential(size=400).tolist()
    assert factor_of_starts([3.0]) == 1
    ordered = sorted(values)
    ends = interval_over_starts([values], 0.5)
    assert ends is not None
    assert {ordered.index(end) for end in ends} == {
        179,
        220,
    }  # at most 179 of 400 are below the median 2.0 times in 100, 180 2.6
    assert interval_over_starts([values[:200], values[200:367]], 0.99) is None


@pytest.mark.parametrize("between", [0.0, 0.02, 0.2])
def test_intervals_over_starts_hold_the_median_over_all_starts(between: float) -> None:
    """Log-normal starts, and log-normal times within a start; the median is 1."""
    generator, trials = np.random.default_rng(0), 600
    held = 0
    for _ in range(trials):
        starts = np.exp(between * generator.normal(size=(3, 1)) + 0.05 * generator.normal(size=(3, 40)))
        ends = interval_over_starts(starts.tolist(), 0.5)
        assert ends is not None
        held += ends[0] <= 1 <= ends[1]
    assert held >= 0.94 * trials


@pytest.mark.parametrize("rigor", [Rigor(0, 1.0, 3), Rigor(1, 1.0, 0)])
def test_what_is_needed_is_at_least_one(planted, rigor: Rigor) -> None:
    with pytest.raises(CompressError, match="at least 1"):
        measure(TWO, BenchSpec(rigor=rigor))
    assert planted.started == []


@pytest.mark.parametrize(
    ("wall", "cpu", "noisy"),
    [(1.05, 1.0, True), (1.0, 0.95, True), (1.03, 0.97, False), (0.9699, 1.0, True), (1.0, None, False)],
)
def test_a_control_beyond_3_percent_is_too_noisy(wall: float, cpu: float | None, noisy: bool) -> None:
    assert (too_noisy([control(wall, cpu)]) == {(1, 8)}) is noisy


def control(wall: float, cpu: float | None) -> Latency:
    times = {"p50": 1.0, "examples_per_second": 1000.0, "runs": 1024, "cpu_p50": 1.0}
    return Latency(batch=1, length=8, **times, speedup=wall, cpu_speedup=cpu)


def test_a_planted_slow_copy_is_too_noisy(planted) -> None:
    planted.milliseconds = lambda name, start: 33.6 if name == AGAIN else 32.0
    runtimes: dict[str, Runtime] = measure(TWO, BenchSpec(((1, 8), (2, 8)), warmup=0, rigor=Rigor(100, 0.1, 2)))
    assert too_noisy(runtimes[AGAIN].latency) == {(1, 8), (2, 8)}
