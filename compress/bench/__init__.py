"""Latency of models, each in a process of its own, interleaved with the baseline and a second copy of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import CompressError

if TYPE_CHECKING:
    from ..results import Latency, Runtime
    from .process import Child

__all__ = ["AGAIN", "BenchSpec", "Candidate", "measure"]

AGAIN = "baseline again"
MIN_RUNS = 3
# Per shape, all candidates together: what large batches of large models are cut to, down to MIN_RUNS.
SECONDS_SINGLE, SECONDS_BATCH = 60.0, 30.0

Progress = Callable[[str, int, int], None]
Shape = tuple[int, int]


@dataclass(frozen=True)
class Candidate:
    """`path` is an ONNX file (`onnx`) or a checkpoint folder run in eager fp32 (`torch`)."""

    name: str
    path: Path
    runtime: Literal["onnx", "torch"]


@dataclass(frozen=True)
class BenchSpec:
    """`shapes`: (batch, length) in tokens; `lengths`: a sample of the task's own, one text at a time."""

    shapes: tuple[Shape, ...] = ((1, 32), (1, 128), (32, 128))
    lengths: tuple[int, ...] = ()
    runs: int = 30
    warmup: int = 5
    threads: int = 1


def measure(
    candidates: Sequence[Candidate], spec: BenchSpec, on_progress: Progress | None = None
) -> dict[str, Runtime]:
    """Measure all candidates at once; the first is the baseline, and a second process of it is `baseline again`.

    Each round runs every candidate once in a new random order (seeded), so drift of the machine meets all
    alike; `speedup` compares medians of the same rounds, and the copy's distance from 1 is the noise.
    A time limit per shape may end it before `spec.runs`; `Latency.runs` says how many there were.
    `on_progress(what, done, total)`. CompressError: a model that cannot be loaded or run at a shape;
    CheckFailed: a process that died or hung. No process outlives the call.
    """
    from .process import Child

    _check(candidates, spec)
    everyone = [*candidates, Candidate(AGAIN, candidates[0].path, candidates[0].runtime)]
    with ExitStack() as stack:
        children = [stack.enter_context(Child(candidate, spec.threads)) for candidate in everyone]
        loads = [child.load() for child in children]
        rows: dict[str, list[Latency]] = {child.name: [] for child in children}
        plans = list(_plans(spec))
        for number, (shape, texts) in enumerate(plans):
            if on_progress:
                on_progress(f"{shape[0]} x {shape[1]}" if shape[0] else "the task's own lengths", number, len(plans))
            for name, row in _rows(children, shape, texts, spec.warmup).items():
                rows[name].append(row)
        if on_progress:
            on_progress("done", len(plans), len(plans))
        return {
            child.name: _runtime(rows[child.name], child.peak_memory_bytes(), load, spec.threads)
            for child, load in zip(children, loads, strict=True)
        }


def _check(candidates: Sequence[Candidate], spec: BenchSpec) -> None:
    names = [candidate.name for candidate in candidates]
    if not names or len(set(names)) != len(names) or AGAIN in names:
        raise CompressError(f"bench: expected one or more different names, none of them {AGAIN!r}; found {names}")
    sizes = [*(size for shape in spec.shapes for size in shape), *spec.lengths, spec.runs, spec.threads]
    if not (spec.shapes or spec.lengths) or min(sizes) < 1:
        raise CompressError(f"bench: expected shapes, runs and threads of at least 1, found {spec}")


def _plans(spec: BenchSpec) -> Iterator[tuple[Shape, list[Shape]]]:
    """The row's shape, (0, 0) for the task's own lengths, and the shape of each of its runs."""
    for shape in spec.shapes:
        yield shape, [shape] * spec.runs
    if spec.lengths:
        lengths = list(spec.lengths) * -(-spec.runs // len(spec.lengths))
        random.Random(0).shuffle(lengths)  # the time limit may cut it: any prefix is a fair sample
        yield (0, 0), [(1, length) for length in lengths]


def _rows(children: list[Child], shape: Shape, runs: list[Shape], warmup: int) -> dict[str, Latency]:
    seconds = SECONDS_SINGLE if shape[0] <= 1 else SECONDS_BATCH
    _rounds(children, runs[:1] * warmup, seconds / 4, 1)
    times = _rounds(children, runs, seconds, MIN_RUNS)
    baseline = _percentile(times[children[0].name], 50)
    return {name: _latency(shape, values, baseline) for name, values in times.items()}


def _rounds(children: list[Child], shapes: list[Shape], seconds: float, at_least: int) -> dict[str, list[float]]:
    """Milliseconds per child, one per round."""
    order = random.Random(0)
    times: dict[str, list[float]] = {child.name: [] for child in children}
    start = time.monotonic()
    for number, (batch, length) in enumerate(shapes):
        if number >= at_least and time.monotonic() - start > seconds:
            break
        for child in order.sample(children, len(children)):
            times[child.name].append(child.run(batch, length))
    return times


def _percentile(values: list[float], percent: float) -> float:
    import numpy as np

    return float(np.percentile(values, percent))


def _latency(shape: Shape, times: list[float], baseline: float) -> Latency:
    from ..results import Latency

    p50, p90, p99 = (_percentile(times, percent) for percent in (50, 90, 99))
    return Latency(
        batch=shape[0],
        length=shape[1],
        p50=p50,
        p90=p90,
        p99=p99,
        examples_per_second=1000 * max(1, shape[0]) * len(times) / sum(times),
        speedup=baseline / p50,
        runs=len(times),
    )


def _runtime(rows: list[Latency], peak: int, load_ms: float, threads: int) -> Runtime:
    from ..results import Runtime

    return Runtime(latency=tuple(rows), peak_memory_bytes=peak, load_ms=load_ms, threads=threads)
