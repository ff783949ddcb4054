"""Which measured times can be trusted: CPU time of one thread holds on a busy machine too, wall time on a quiet one alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .results import Latency, Result, Runtime

TOLERANCE = 0.10  # two times of the same work that differ by more were not taken on a quiet machine


def uses_cpu_time(runtimes: Iterable[Runtime]) -> bool:
    """Whether CPU time is the headline: all ran on one thread, and it was recorded. The CPU time of several threads is their sum,
    which tells no latency."""
    return all(
        runtime.threads == 1 and latency.cpu_p50 and latency.cpu_speedup is not None
        for runtime in runtimes
        for latency in runtime.latency
    )


def headline(latency: Latency, *, cpu: bool) -> tuple[float, float]:
    """(milliseconds, speed-up over the baseline), of CPU time or of wall time; both p50."""
    if cpu and latency.cpu_p50 is not None and latency.cpu_speedup is not None:
        return latency.cpu_p50, latency.cpu_speedup
    return latency.p50, latency.speedup


@dataclass(frozen=True)
class Doubts:
    """Why times are not to be trusted, as parts of a sentence; empty where they are."""

    wall: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()

    def warning(self, *, cpu: bool) -> str | None:
        """A line on which figures not to trust. `cpu`: whether CPU time is the headline."""
        reasons = "; ".join(dict.fromkeys((*self.wall, *self.cpu)))
        if not self.trusts_headline(cpu=cpu):
            return f"The machine was busy: {reasons}. Trust no time and no speed-up here; measure again on a quiet machine."
        if self.wall:
            return f"The machine was busy: {reasons}. Trust CPU times and their speed-ups; not wall times."
        return None

    def trusts_headline(self, *, cpu: bool) -> bool:
        return not (self.cpu if cpu else self.wall)


def doubts(noise: Sequence[Latency], runtimes: Sequence[Runtime]) -> Doubts:
    """Of one run: `noise` is the baseline timed against itself (A/A), `runtimes` all models that were timed in turns.

    Wall time is in doubt where the A/A control or the ratio of wall to CPU time of one thread is beyond ±10%, CPU time
    where the A/A control in CPU time is.
    """
    wall = [("the A/A control", row.speedup, row) for row in noise]
    cpu = [("the A/A control in CPU time", row.cpu_speedup, row) for row in noise if row.cpu_speedup]
    for runtime in runtimes:
        if runtime.threads == 1:
            wall += [("wall time over CPU time", row.p50 / row.cpu_p50, row) for row in runtime.latency if row.cpu_p50]
    return Doubts(tuple(_worst(wall)), tuple(_worst(cpu)))


def warning_of(result: Result) -> str | None:
    """`Doubts.warning` of a run, by the headline that its times have."""
    runtimes = [runtime for model in result.models for runtime in (model.onnx, model.torch_eager) if runtime]
    return doubts(result.noise, runtimes).warning(cpu=uses_cpu_time(runtimes))


def _worst(ratios: Sequence[tuple[str, float, Latency]]) -> Iterator[str]:
    """For each kind of ratio, the one farthest from 1, where it is beyond the tolerance."""
    for what in dict.fromkeys(name for name, _, _ in ratios):
        ratio, row = max(
            ((ratio, row) for name, ratio, row in ratios if name == what), key=lambda pair: max(pair[0], 1 / pair[0])
        )
        if max(ratio, 1 / ratio) > 1 + TOLERANCE:
            shape = f"{row.batch} × {row.length}" if row.batch else "the task's lengths"
            yield f"{what} is {ratio:.2f} at {shape}, expected 1"
