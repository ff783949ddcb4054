"""Real child processes on tiny models; a child that dies, hangs or cannot run is one error line and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress.bench import AGAIN, BenchSpec, Candidate, measure, rounds
from compress.bench.process import Child, Times
from compress.cli.benching import _shapes
from compress.errors import CheckFailed, CompressError
from compress.pipeline import BenchSettings
from compress.results import Runtime


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    """Record every child started by the test."""
    started: list[Child] = []
    start = Child.__init__

    def remember(self, *args, **options) -> None:
        start(self, *args, **options)
        started.append(self)

    monkeypatch.setattr(Child, "__init__", remember)
    return started


def test_rows_are_complete_and_speedups_are_against_the_same_rounds(tiny_onnx, children: list[Child]) -> None:
    candidates = [
        Candidate("teacher", tiny_onnx("bert"), "onnx"),
        Candidate("student", tiny_onnx("distilbert", "fast"), "onnx"),
    ]
    spec = BenchSpec(shapes=((1, 8), (4, 16)), lengths=(3, 5, 7), runs=4, warmup=1)
    seen: list[tuple[str, int, int]] = []
    runtimes = measure(candidates, spec, lambda *progress: seen.append(progress))
    assert list(runtimes) == ["teacher", "student", AGAIN]
    for name, runtime in runtimes.items():
        assert [(row.batch, row.length) for row in runtime.latency] == [(1, 8), (4, 16), (0, 0)]
        assert [row.runs for row in runtime.latency] == [4, 4, 6]  # the three lengths twice: 4 runs or more
        assert runtime.threads == 1
        assert runtime.engine == f"onnxruntime {version('onnxruntime')}"
        assert runtime.load_ms > 0
        assert 10e6 < runtime.peak_memory_bytes < 1e9
        for row, base in zip(runtime.latency, runtimes["teacher"].latency, strict=True):
            assert row.p50 > 0
            assert (row.p90, row.p99, row.starts) == (None, None, 1)  # too few runs to know them
            assert row.speedup == pytest.approx(base.p50 / row.p50)
            assert row.cpu_p50 is not None and base.cpu_p50 is not None
            assert row.cpu_p50 > 0
            assert row.cpu_speedup == pytest.approx(base.cpu_p50 / row.cpu_p50)
            assert name != "teacher" or (row.speedup, row.cpu_speedup) == (1, 1)
    assert seen == [("1 x 8", 0, 3), ("4 x 16", 1, 3), ("the task's own lengths", 2, 3), ("shapes timed", 3, 3)]
    assert len(children) == 3
    assert len({child.pid for child in children}) == 3
    assert all(gone(child.pid) for child in children)


def test_a_run_times_the_shapes_that_bench_does() -> None:
    assert BenchSettings().shapes == BenchSpec().shapes == _shapes(None)


@pytest.mark.slow
def test_torch_eager_is_measured_beside_onnx(tiny_onnx, tiny_checkpoint) -> None:
    candidates = [Candidate("onnx", tiny_onnx("bert"), "onnx"), Candidate("torch", tiny_checkpoint("bert"), "torch")]
    runtimes = measure(candidates, BenchSpec(shapes=((2, 8),), runs=3, warmup=1))
    assert runtimes["torch"].latency[0].runs == 3
    assert runtimes["torch"].peak_memory_bytes > 1.5 * runtimes["onnx"].peak_memory_bytes  # torch itself


class FakeChild:
    """A child that answers at once; `clock` advances by the model's time."""

    calls: list[tuple[str, int, int]]
    clock: float
    noise: Callable[[str], float]  # the factor by which a run of the model with that name is slower

    def __init__(self, candidate: Candidate, threads: int) -> None:
        self.candidate, self.name = candidate, candidate.name

    def __enter__(self) -> FakeChild:
        return self

    def __exit__(self, *_: object) -> None: ...

    def load(self) -> tuple[float, str]:
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
    monkeypatch.setattr("compress.bench.latency.Child", FakeChild)
    monkeypatch.setattr(rounds.time, "monotonic", lambda: FakeChild.clock)
    return FakeChild


TWO = [Candidate("slow", Path("a"), "onnx"), Candidate("fast", Path("b"), "onnx")]


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
    assert (slow.runs, fast.runs, again.runs) == (
        30,
        30,
        6,
    )  # one noisy model keeps the baseline in the rounds, and no other
    assert slow.half_width == slow.speedup_half_width == again.speedup_half_width == 0
    assert fast.half_width > 0.05
    assert fast.speedup_half_width > 0.05


def test_a_model_that_left_is_compared_with_the_baseline_of_its_rounds(fake) -> None:
    generator = np.random.default_rng(0)

    def noise(name: str) -> float:
        rounds = sum(called == "slow" for called, *_ in fake.calls)
        return float(np.exp(0.3 * generator.normal())) if name == "noisy" else 1.0 if rounds <= 7 else 3.0

    fake.noise = noise
    three = [*TWO, Candidate("noisy", Path("c"), "onnx")]
    slow, fast, noisy, again = _rows_of(measure(three, BenchSpec(shapes=((1, 8),), runs=30, warmup=1, narrow=0.05)))
    assert (slow.runs, fast.runs, noisy.runs, again.runs) == (30, 6, 30, 6)
    assert (slow.p50, fast.p50, again.p50) == (12, 1, 4)  # the baseline became slow after they left
    assert (fast.speedup, fast.cpu_speedup, again.speedup) == (4, 8, 1)
    assert fast.speedup_half_width == again.speedup_half_width == 0


def test_every_model_reads_every_text(fake) -> None:
    """A noisy model keeps the quiet ones, which would else be timed on other texts."""
    generator = np.random.default_rng(0)
    fake.noise = lambda name: float(np.exp(0.3 * generator.normal())) if name == "fast" else 1.0
    spec = BenchSpec(shapes=(), lengths=(8, 8, 8, 8), runs=40, narrow=0.05)
    assert [row.runs for row in _rows_of(measure(TWO, spec))] == [40, 40, 40]


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


@pytest.mark.parametrize("candidates", [[], [TWO[0], TWO[0]], [Candidate(AGAIN, Path("a"), "onnx")]])
def test_names_must_differ(candidates: list[Candidate]) -> None:
    with pytest.raises(CompressError, match="expected one or more different names"):
        measure(candidates, BenchSpec())


@pytest.mark.parametrize("spec", [BenchSpec(shapes=()), BenchSpec(runs=0), BenchSpec(shapes=((0, 8),))])
def test_sizes_are_at_least_one(spec: BenchSpec) -> None:
    with pytest.raises(CompressError, match="at least 1"):
        measure(TWO, spec)


def test_a_dead_child_is_named_with_its_signal(tiny_onnx, children: list[Child]) -> None:
    with Child(Candidate("student", tiny_onnx("bert"), "onnx"), 1) as child:
        child.load()
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(CheckFailed, match=r"bench: student: its process died \(signal 9\): it said nothing"):
            for _ in range(2):  # the first request may still fit into the pipe
                child.run([4])
    assert gone(children[0].pid)


def test_a_child_s_last_words_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho first >&2\necho 'Illegal instruction' >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr("compress.bench.process.sys.executable", str(script))
    with pytest.raises(CheckFailed, match=r"bench: slow: its process died \(exit status 3\): Illegal instruction"):
        measure(TWO, BenchSpec())


def test_a_hanging_child_ends_in_an_error(tiny_onnx, children: list[Child]) -> None:
    candidate = Candidate("student", tiny_onnx("bert"), "onnx")
    with (
        pytest.raises(CheckFailed, match=r"student: no answer in 0\.5 s"),
        Child(candidate, 1, timeout_seconds=60) as child,
    ):
        child.load()
        child.worker.timeout = 0.5
        os.kill(child.pid, signal.SIGSTOP)
        child.run([4])
    assert gone(children[0].pid)


def test_an_interrupt_leaves_no_process(tiny_onnx, children: list[Child]) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure([Candidate("teacher", tiny_onnx("bert"), "onnx")], BenchSpec(((1, 8),), runs=1), interrupt)
    assert len(children) == 2
    assert all(gone(child.pid) for child in children)


def test_a_model_that_cannot_be_used_is_one_line(tiny_onnx, tmp_path: Path, children: list[Child]) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("something was measured")

    (tmp_path / "cut.onnx").write_bytes(tiny_onnx("bert").read_bytes()[:2000])
    with pytest.raises(CompressError, match=r"bench: cut: .*cut\.onnx: not an ONNX file, or a truncated one"):
        measure([Candidate("cut", tmp_path / "cut.onnx", "onnx")], BenchSpec(runs=1))
    with pytest.raises(CompressError, match="takes at most 24 tokens, asked for 25"):
        measure([Candidate("short", tiny_onnx("bert"), "onnx")], BenchSpec(shapes=((1, 8), (1, 25)), runs=1), fail)
    assert all(gone(child.pid) for child in children)


def test_peak_memory_is_not_the_parent_s() -> None:
    ballast = bytearray(os.urandom(1024)) * (400 * 1024)  # 400 MB, all pages written
    code = "from compress.bench.child import peak_memory_bytes; print(peak_memory_bytes())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 5e6 < int(done.stdout) < 250e6 < len(ballast)


def test_the_child_of_an_onnx_model_imports_little(tiny_onnx) -> None:
    code = (
        "import sys; from compress.bench.child import Server; server = Server()\n"
        f"server.load('onnx', {str(tiny_onnx('bert'))!r}, 1); assert min(server.run([5, 5])) >= 0\n"
        "heavy = {'torch', 'transformers', 'onnx', 'pydantic', 'tokenizers'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
