"""Rounds with children that answer at once: what is timed how often, and which rounds figures compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress.bench import AGAIN, BenchSpec, Candidate, measure, rounds, rows
from compress.bench.process import Times
from compress.errors import CompressError
from compress.results import Runtime

pytestmark = pytest.mark.end_to_end


class FakeChild:
    """A child that answers at once; `clock` advances by the model's time."""

    calls: list[tuple[str, int, int]]
    preparations: list[str]  # what was asked of the children before the first run, in order
    clock: float
    noise: Callable[[str], float]  # the factor by which a run of the model with that name is slower

    def __init__(self, candidate: Candidate, threads: int) -> None:
        self.candidate, self.name = candidate, candidate.name

    def __enter__(self) -> FakeChild:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start_imports(self) -> None:
        FakeChild.preparations.append("start")

    def finish_imports(self) -> None:
        FakeChild.preparations.append("finish")

    def load(self) -> tuple[float, str]:
        FakeChild.preparations.append("load")
        return 1.0, "fake"

    def prepare(self, rows: list[int]) -> None: ...

    def peak_memory_bytes(self) -> int:
        return 1

    def warm(self, rows: list[int]) -> None:
        self.run(rows)

    def run(self, rows: list[int]) -> Times:
        """CPU time is half of the wall-clock time for `fast`, and zero for `idle`."""
        FakeChild.calls.append((self.name, len(rows), max(rows)))
        milliseconds = {"slow": 4.0, "fast": 1.0}.get(self.name, 4.0) * len(rows) * FakeChild.noise(self.name)
        FakeChild.clock += milliseconds / 1000
        return Times(milliseconds, milliseconds * {"fast": 0.5, "idle": 0.0}.get(self.name, 1.0))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeChild]:
    FakeChild.calls, FakeChild.clock, FakeChild.noise = [], 0.0, lambda name: 1.0
    FakeChild.preparations = []
    monkeypatch.setattr("compress.bench.latency.Child", FakeChild)
    monkeypatch.setattr(rounds.time, "monotonic", lambda: FakeChild.clock)
    return FakeChild


TWO = [Candidate("slow", Path("a"), "onnx"), Candidate("fast", Path("b"), "onnx")]


def test_children_import_at_once_and_load_one_by_one_afterwards(fake) -> None:
    measure(TWO, BenchSpec(shapes=((1, 8),), runs=3))
    assert fake.preparations == ["start"] * 3 + ["finish"] * 3 + ["load"] * 3


def test_every_round_holds_each_candidate_once_in_changing_order(fake) -> None:
    runtimes = measure(TWO, BenchSpec(shapes=((1, 8),), runs=20, warmup=3))
    rounds = [tuple(name for name, _, _ in fake.calls[start : start + 3]) for start in range(0, len(fake.calls), 3)]
    assert len(rounds) == 3 + 20
    assert all(set(names) == {"slow", "fast", AGAIN} for names in rounds)
    assert len(set(rounds)) > 1
    row = runtimes["fast"].latency[0]
    assert (row.p50, row.speedup, row.runs, row.examples_per_second) == (1, 4, 20, 1000)
    assert (row.cpu_p50, row.cpu_speedup) == (0.5, 8)
    assert runtimes[AGAIN].latency[0].speedup == 1


def test_the_time_limit_cuts_large_batches_and_says_so(fake) -> None:
    runtimes = measure(TWO, BenchSpec(shapes=((2000, 8), (1, 8)), runs=30, warmup=5))
    large, single = runtimes["slow"].latency
    assert large.runs == rounds.MIN_RUNS  # 18 s per round: two would exceed the 30 s, but three are the minimum
    assert single.runs == 30


def test_quiet_shapes_end_early_and_noisy_ones_have_all_runs(fake) -> None:
    spec = BenchSpec(shapes=((1, 8),), runs=30, narrow=0.05)
    assert [(row.runs, row.half_width) for row in _rows_of(measure(TWO, spec))] == [(6, 0)] * 3
    assert {row.runs for row in _rows_of(measure(TWO, replace(spec, narrow=None)))} == {30}

    generator = np.random.default_rng(0)
    fake.noise = lambda name: float(np.exp(0.3 * generator.normal())) if name == "fast" else 1.0
    slow, fast, again = _rows_of(measure(TWO, spec))
    assert (slow.runs, fast.runs, again.runs) == (30, 30, 30)  # one noisy model keeps all models in the rounds
    assert slow.half_width == slow.speedup_half_width == again.speedup_half_width == 0
    assert fast.half_width > 0.05
    assert fast.speedup_half_width > 0.05


def test_a_noisy_baseline_goes_on_though_ratios_are_known(fake) -> None:
    """All models are slow in the same rounds."""
    generator = np.random.default_rng(0)
    rounds: list[float] = []

    def noise(name: str) -> float:
        if len(fake.calls) % 3 == 1:
            rounds.append(float(np.exp(0.3 * generator.normal())))
        return rounds[-1]

    fake.noise = noise
    slow, fast, _ = _rows_of(measure(TWO, BenchSpec(shapes=((1, 8),), runs=30, narrow=0.05)))
    assert (slow.runs, fast.runs) == (30, 30)
    assert fast.half_width > 0.05 > fast.speedup_half_width


def _rows_of(runtimes: dict[str, Runtime]) -> list[Any]:
    """Return the only row of each model."""
    return [runtime.latency[0] for runtime in runtimes.values()]


def test_own_lengths_are_measured_one_text_at_a_time(fake) -> None:
    runtimes = measure(TWO, BenchSpec(shapes=(), lengths=(8, 8, 8, 3), runs=2, warmup=0))
    assert sorted(length for name, _, length in fake.calls if name == "fast") == [3, 8, 8, 8]
    assert {batch for _, batch, _ in fake.calls} == {1}
    assert [(row.batch, row.length, row.runs) for row in runtimes["fast"].latency] == [(0, 0, 4)]


def test_candidates_with_tokenizers_of_their_own_read_the_same_texts(fake) -> None:
    own = [TWO[0], Candidate("fast", Path("b"), "onnx", lengths=(10, 20))]
    measure(own, BenchSpec(shapes=(), lengths=(1, 2), runs=6, warmup=0))
    rounds = [{name: length for name, _, length in fake.calls[start : start + 3]} for start in range(0, 18, 3)]
    assert {tuple(sorted(lengths.items())) for lengths in rounds} == {
        ((AGAIN, 1), ("fast", 10), ("slow", 1)),
        ((AGAIN, 2), ("fast", 20), ("slow", 2)),
    }
    with pytest.raises(CompressError, match="fast: expected 3 lengths, one for each text; found 2"):
        measure(own, BenchSpec(lengths=(1, 2, 3)))


def test_no_cpu_time_gives_no_speedup(fake) -> None:
    runtimes = measure([TWO[0], Candidate("idle", Path("b"), "onnx")], BenchSpec(shapes=((1, 8),), runs=1))
    assert (runtimes["idle"].latency[0].cpu_p50, runtimes["idle"].latency[0].cpu_speedup) == (0, None)


def test_a_baseline_too_quick_for_the_cpu_clock_has_no_cpu_speedup() -> None:
    some, none = [[Times(1.0, 1.0)] * 6], [[Times(1.0, 0.0)] * 6]
    for times, baseline in ((some, none), (none, some), (none, none)):
        row = rows.latency((1, 32), times, baseline, on_cpu=True)
        assert (row.speedup, row.cpu_speedup, row.speedup_half_width) == (1.0, None, None)
