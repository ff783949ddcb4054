"""Real child processes on tiny models; a child that dies, hangs or cannot run is one error line and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from compress.bench import AGAIN, BenchSpec, Candidate, measure
from compress.bench.process import Child
from compress.cli.benching import _shapes
from compress.errors import CheckFailed, CompressError
from compress.pipeline import BenchSettings

pytestmark = pytest.mark.end_to_end

ONE = Candidate("one", Path("a"), "onnx")


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


@pytest.mark.parametrize("candidates", [[], [ONE, ONE], [replace(ONE, name=AGAIN)]])
def test_names_must_differ(candidates: list[Candidate]) -> None:
    with pytest.raises(CompressError, match="expected one or more different names"):
        measure(candidates, BenchSpec())


@pytest.mark.parametrize("spec", [BenchSpec(shapes=()), BenchSpec(runs=0), BenchSpec(shapes=((0, 8),))])
def test_sizes_are_at_least_one(spec: BenchSpec) -> None:
    with pytest.raises(CompressError, match="at least 1"):
        measure([ONE], spec)


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
    with pytest.raises(CheckFailed, match=r"bench: one: its process died \(exit status 3\): Illegal instruction"):
        measure([ONE], BenchSpec())


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
