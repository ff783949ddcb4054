"""Latency of models, each in a process of its own, interleaved with the baseline and a second copy of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from ..errors import CompressError
from .process import Child, Times
from .rounds import Enough, Plan, Series, Tally, by_rigor, by_runs, plans, time_rounds, warm_up
from .rows import latency, widest
from .spec import BenchSpec, Candidate, Progress

if TYPE_CHECKING:
    from ..results import Runtime

AGAIN = "baseline again"


def measure(
    candidates: Sequence[Candidate], spec: BenchSpec, on_progress: Progress | None = None
) -> dict[str, Runtime]:
    """Measure all candidates at once; the first is the baseline, and a second process of it is `baseline again`.

    Each round runs every candidate once in a new random order (seeded), so that drift of the machine affects all alike. `speedup` and
    `cpu_speedup` compare medians of the same rounds; how far the copy's speedup is from 1 is the noise. A shape stops before
    `spec.runs` at a time limit or, if `spec.narrow` is set, once the intervals of all p50 and of all ratios to the baseline are narrow
    enough; `Latency.runs` is the actual number of runs. With `spec.rigor` the processes are started several times, and the times of all
    starts are pooled. `on_progress(what, done, total)` is called before each shape and at the end. CompressError: a model cannot be
    loaded or run at a shape, usually before anything is timed; CheckFailed: a process died or hung. No process outlives the call.
    """
    _check(candidates, spec)
    return _Measurement(candidates, spec, on_progress or (lambda what, done, total: None)).runtimes()


class _Measurement:
    """`times`: for each row, model -> one list of times per start."""

    def __init__(self, candidates: Sequence[Candidate], spec: BenchSpec, on_progress: Progress) -> None:
        self.everyone = [*candidates, replace(candidates[0], name=AGAIN)]
        self.baseline, self.spec, self.on_progress = candidates[0].name, spec, on_progress
        self.on_cpu = spec.threads == 1
        self.plans = plans(spec)
        self.inputs = [plan.passes() for plan in self.plans]
        self.tallies = [Tally() for _ in self.plans]
        self.times: list[dict[str, list[list[Times]]]] = [defaultdict(list) for _ in self.plans]
        self.loads: dict[str, list[float]] = defaultdict(list)
        self.peaks: dict[str, list[int]] = defaultdict(list)
        self.engines: dict[str, str] = {}

    def runtimes(self) -> dict[str, Runtime]:
        from ..results import Runtime

        starts = self.spec.rigor.starts if self.spec.rigor else 1
        for start in range(starts):
            self._measure_start(start, starts)
        total = starts * len(self.plans)
        self.on_progress("shapes timed", total, total)
        return {
            one.name: Runtime(
                latency=tuple(
                    latency(plan.shape, times[one.name], times[self.baseline], on_cpu=self.on_cpu)
                    for plan, times in zip(self.plans, self.times, strict=True)
                ),
                peak_memory_bytes=max(self.peaks[one.name]),
                load_ms=median(self.loads[one.name]),
                threads=self.spec.threads,
                engine=self.engines[one.name],
            )
            for one in self.everyone
        }

    def _measure_start(self, start: int, starts: int) -> None:
        """Measure all shapes once, in processes that live only as long as this call."""
        with ExitStack() as stack:
            children = [stack.enter_context(Child(candidate, self.spec.threads)) for candidate in self.everyone]
            # Imports take seconds: all at once, and before the first load is timed.
            for child in children:
                child.start_imports()
            for child in children:
                child.finish_imports()
            for child in children:
                milliseconds, self.engines[child.name] = child.load()
                self.loads[child.name].append(milliseconds)
            for child in children:
                for plan in self.plans:
                    child.prepare(plan.longest(child.candidate))
            for number, plan in enumerate(self.plans):
                title = plan.title if starts == 1 else f"{plan.title}, start {start + 1} of {starts}"
                self.on_progress(title, start * len(self.plans) + number, starts * len(self.plans))
                warm_up(children, plan, self.spec.warmup)
                enough = self._stopping_rule(number, plan, start)
                for name, values in time_rounds(children, self.inputs[number], enough, start).items():
                    self.times[number][name].append(values)
            for child in children:
                self.peaks[child.name].append(child.peak_memory_bytes())

    def _stopping_rule(self, number: int, plan: Plan, start: int) -> Enough:
        if self.spec.rigor:
            return by_rigor(plan, self.spec.rigor, start, self.tallies[number])
        return by_runs(plan, self.spec.runs, self._is_narrow)

    def _is_narrow(self, times: Series) -> bool:
        narrow = self.spec.narrow
        return narrow is not None and widest(list(times.values()), times[self.baseline], on_cpu=self.on_cpu) <= narrow


def _check(candidates: Sequence[Candidate], spec: BenchSpec) -> None:
    names = [candidate.name for candidate in candidates]
    if not names or len(set(names)) != len(names) or AGAIN in names:
        raise CompressError(f"bench: expected one or more different names, none of them {AGAIN!r}; found {names}")
    own = [length for candidate in candidates for length in candidate.lengths]
    sizes = [*(size for shape in spec.shapes for size in shape), *spec.lengths, *own, spec.runs, spec.threads]
    if spec.rigor:
        sizes += [spec.rigor.queries, spec.rigor.starts]
    if not (spec.shapes or spec.lengths) or min(sizes) < 1:
        raise CompressError(f"bench: expected shapes, runs and threads of at least 1, found {spec}")
    for candidate in candidates:
        if candidate.lengths and len(candidate.lengths) != len(spec.lengths):
            raise CompressError(
                f"bench: {candidate.name}: expected {len(spec.lengths)} lengths, one for each text; "
                f"found {len(candidate.lengths)}"
            )
