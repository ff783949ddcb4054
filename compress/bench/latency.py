"""Latency of models, each in a process of its own, interleaved with the baseline and a second copy of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from ..errors import CompressError
from .intervals import half_width, is_check
from .process import Child, Times
from .spec import BenchSpec, Candidate, Progress, Shape

if TYPE_CHECKING:
    from ..results import Latency, Runtime

AGAIN = "baseline again"
MIN_RUNS = 3
# Per shape, all candidates together: what large batches of large models are cut to, down to MIN_RUNS.
SECONDS_SINGLE, SECONDS_BATCH = 60.0, 20.0
SECONDS_WARMUP = 1.0


@dataclass(frozen=True)
class _Plan:
    """A row: its shape, (0, 0) for the task's own lengths, and for each of its runs the tokens of each text."""

    shape: Shape
    runs: list[Callable[[Candidate], list[int]]]

    @property
    def title(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]}" if self.shape[0] else "the task's own lengths"


def measure(
    candidates: Sequence[Candidate], spec: BenchSpec, on_progress: Progress | None = None
) -> dict[str, Runtime]:
    """Measure all candidates at once; the first is the baseline, and a second process of it is `baseline again`.

    Each round runs every candidate once in a new random order (seeded), so drift of the machine meets all
    alike; `speedup` and `cpu_speedup` compare medians of the same rounds, and the copy's distance from 1 is the
    noise. A shape ends before `spec.runs` at a time limit and, where `spec.narrow` says so, once the intervals of all p50
    and of all ratios to the baseline are narrow enough; `Latency.runs` says how many there were.
    `on_progress(what, done, total)`. CompressError: a model that cannot be loaded or run at a shape, mostly before
    anything is timed; CheckFailed: a process that died or hung. No process outlives the call.
    """
    _check(candidates, spec)
    everyone = [*candidates, replace(candidates[0], name=AGAIN)]
    with ExitStack() as stack:
        children = [stack.enter_context(Child(candidate, spec.threads)) for candidate in everyone]
        loads = [child.load() for child in children]
        plans = list(_plans(spec))
        for child in children:
            for plan in plans:
                child.prepare(max((run(child.candidate) for run in plan.runs), key=max))
        rows: dict[str, list[Latency]] = {child.name: [] for child in children}
        for number, plan in enumerate(plans):
            if on_progress:
                on_progress(plan.title, number, len(plans))
            for name, row in _rows(children, plan, spec).items():
                rows[name].append(row)
        if on_progress:
            on_progress("shapes timed", len(plans), len(plans))
        return {
            child.name: _runtime(rows[child.name], child.peak_memory_bytes(), load, spec.threads)
            for child, load in zip(children, loads, strict=True)
        }


def _check(candidates: Sequence[Candidate], spec: BenchSpec) -> None:
    names = [candidate.name for candidate in candidates]
    if not names or len(set(names)) != len(names) or AGAIN in names:
        raise CompressError(f"bench: expected one or more different names, none of them {AGAIN!r}; found {names}")
    own = [length for candidate in candidates for length in candidate.lengths]
    sizes = [*(size for shape in spec.shapes for size in shape), *spec.lengths, *own, spec.runs, spec.threads]
    if not (spec.shapes or spec.lengths) or min(sizes) < 1:
        raise CompressError(f"bench: expected shapes, runs and threads of at least 1, found {spec}")
    for candidate in candidates:
        if candidate.lengths and len(candidate.lengths) != len(spec.lengths):
            raise CompressError(
                f"bench: {candidate.name}: expected {len(spec.lengths)} lengths, one for each text; "
                f"found {len(candidate.lengths)}"
            )


def _plans(spec: BenchSpec) -> Iterator[_Plan]:
    for batch, length in spec.shapes:
        yield _Plan((batch, length), [lambda _, rows=[length] * batch: rows] * spec.runs)
    if spec.lengths:
        texts = list(range(len(spec.lengths))) * -(-spec.runs // len(spec.lengths))
        random.Random(0).shuffle(texts)  # the time limit may cut it: any prefix is a fair sample
        yield _Plan((0, 0), [lambda who, text=text: [(who.lengths or spec.lengths)[text]] for text in texts])


def _rows(children: list[Child], plan: _Plan, spec: BenchSpec) -> dict[str, Latency]:
    seconds = SECONDS_SINGLE if plan.shape[0] <= 1 else SECONDS_BATCH
    _rounds(children, plan.runs[:1] * spec.warmup, SECONDS_WARMUP, 1)
    on_cpu = spec.threads == 1
    times = _rounds(children, plan.runs, seconds, MIN_RUNS, spec.narrow, on_cpu=on_cpu)
    baseline = times[children[0].name]
    return {name: _latency(plan.shape, values, baseline, on_cpu=on_cpu) for name, values in times.items()}


def _rounds(
    children: list[Child],
    runs: list[Callable[[Candidate], list[int]]],
    seconds: float,
    at_least: int,
    narrow: float | None = None,
    *,
    on_cpu: bool = True,
) -> dict[str, list[Times]]:
    """Per child one entry per round."""
    order = random.Random(0)
    times: dict[str, list[Times]] = {child.name: [] for child in children}
    start = time.monotonic()
    for number, rows in enumerate(runs):
        if number >= at_least and time.monotonic() - start > seconds:
            break
        if narrow is not None and is_check(number) and _widest(times, children[0].name, on_cpu=on_cpu) <= narrow:
            break
        for child in order.sample(children, len(children)):
            times[child.name].append(child.run(rows(child.candidate)))
    return times


def _widest(times: dict[str, list[Times]], baseline: str, *, on_cpu: bool) -> float:
    """The largest half-width of the p50 and ratios so far; infinite where one has none."""
    widths = [width for values in times.values() for width in _half_widths(values, times[baseline], on_cpu=on_cpu)]
    return max(inf if width is None else width for width in widths)


def _half_widths(times: list[Times], baseline: list[Times], *, on_cpu: bool) -> tuple[float | None, float | None]:
    """Of the p50 and of the ratio to the baseline, round by round; of CPU time, or else by the clock."""
    mine, base = ([one.cpu if on_cpu else one.wall for one in each] for each in (times, baseline))
    if min(mine) <= 0:  # a coarse CPU clock may say 0
        return None, None
    return half_width(mine), half_width([other / own for own, other in zip(mine, base, strict=True)])


def _latency(shape: Shape, times: list[Times], baseline: list[Times], *, on_cpu: bool) -> Latency:
    import numpy as np

    from ..results import Latency

    wall, cpu = np.array(times).T
    p50, p90, p99 = (float(value) for value in np.percentile(wall, (50, 90, 99)))
    cpu_p50 = float(np.median(cpu))
    base, cpu_base = np.median(np.array(baseline), axis=0)
    half_width, speedup_half_width = _half_widths(times, baseline, on_cpu=on_cpu)
    return Latency(
        batch=shape[0],
        length=shape[1],
        p50=p50,
        p90=p90,
        p99=p99,
        examples_per_second=1000 * max(1, shape[0]) * len(times) / float(wall.sum()),
        speedup=float(base) / p50,
        runs=len(times),
        cpu_p50=cpu_p50,
        cpu_speedup=float(cpu_base) / cpu_p50 if cpu_p50 else None,  # a coarse CPU clock may say 0
        half_width=half_width,
        speedup_half_width=speedup_half_width,
    )


def _runtime(rows: list[Latency], peak: int, load: tuple[float, str], threads: int) -> Runtime:
    from ..results import Runtime

    load_ms, engine = load
    return Runtime(latency=tuple(rows), peak_memory_bytes=peak, load_ms=load_ms, threads=threads, engine=engine)
