"""Which measured times can be trusted: CPU time of one thread even on a busy machine, wall time only on a quiet one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .latency import Latency
from .result import Result, Runtime

Shape = tuple[int, int]  # batch, length; (0, 0): one text at a time, of the task's own lengths

RIGOROUS_TOLERANCE = 0.03  # of the A/A control, if a measurement had time enough for it
TOLERANCE = 0.10  # two times of the same work that differ by more were not measured on a quiet machine


def uses_cpu_time(runtimes: Iterable[Runtime]) -> bool:
    """Whether CPU time is the headline: all ran on one thread, and it was recorded. The CPU time of several threads is their
    sum, which is not a latency."""
    return all(
        runtime.threads == 1 and latency.cpu_p50 and latency.cpu_speedup is not None
        for runtime in runtimes
        for latency in runtime.latency
    )


def headline(latency: Latency, *, cpu: bool) -> tuple[float, float]:
    """Return (milliseconds, speed-up over the baseline) in CPU time or in wall time; both p50."""
    if cpu and latency.cpu_p50 is not None and latency.cpu_speedup is not None:
        return latency.cpu_p50, latency.cpu_speedup
    return latency.p50, latency.speedup


@dataclass(frozen=True)
class Doubts:
    """The shapes whose wall or CPU time cannot be trusted, with the reason as part of a sentence."""

    wall: Mapping[Shape, str] = field(default_factory=dict)
    cpu: Mapping[Shape, str] = field(default_factory=dict)

    def of_headline(self, *, cpu: bool) -> Mapping[Shape, str]:
        return self.cpu if cpu else self.wall

    def warning(self, shapes: Container[Shape], *, cpu: bool) -> str | None:
        """Return a line on which figures of `shapes` not to trust; None if all can be trusted. `cpu`: whether CPU time is
        the headline."""
        nothing = {shape: reason for shape, reason in self.of_headline(cpu=cpu).items() if shape in shapes}
        wall = {shape: reason for shape, reason in self.wall.items() if shape in shapes and shape not in nothing}
        if not nothing and not wall:
            return None
        advice = [f"trust no time and no speed-up of {_join_shapes(nothing)}"] if nothing else []
        advice += [f"of {_join_shapes(wall)} trust CPU time, not wall time"] if wall else []
        reasons = "; ".join([*nothing.values(), *wall.values()])
        return f"The machine was busy ({reasons}): {', and '.join(advice)}."


def doubts(noise: Sequence[Latency], runtimes: Sequence[Runtime]) -> Doubts:
    """Return the doubts of one run: `noise` is the baseline timed against itself (A/A), `runtimes` all models that were
    timed in turns.

    The wall time of a shape is in doubt if the A/A control, or the ratio of wall to CPU time of one thread, is beyond ±10%;
    its CPU time is if the A/A control in CPU time is.
    """
    wall = [("the A/A control", row.speedup, row) for row in noise]
    cpu = [("the A/A control in CPU time", row.cpu_speedup, row) for row in noise if row.cpu_speedup]
    for runtime in runtimes:
        if runtime.threads == 1:
            wall += [("wall time over CPU time", row.p50 / row.cpu_p50, row) for row in runtime.latency if row.cpu_p50]
    return Doubts(_worst_ratios(wall), _worst_ratios(cpu))


def too_noisy(noise: Sequence[Latency]) -> set[Shape]:
    """Return the shapes of a rigorous measurement whose ratios do not count: an A/A control, in wall or CPU time, is beyond
    ±3%."""
    return {
        (row.batch, row.length)
        for row in noise
        for ratio in (row.speedup, row.cpu_speedup)
        if ratio is not None and abs(ratio - 1) > RIGOROUS_TOLERANCE + 1e-9  # 1.03 itself is within
    }


def doubts_of(result: Result) -> Doubts:
    """Return the doubts of a run."""
    return doubts(result.noise, _runtimes(result))


def warning_of(result: Result, shapes: Container[Shape]) -> str | None:
    """Return `Doubts.warning` of a run, for its headline time."""
    return doubts_of(result).warning(shapes, cpu=uses_cpu_time(_runtimes(result)))


def _runtimes(result: Result) -> list[Runtime]:
    return [runtime for model in result.models for runtime in (model.onnx, model.torch_eager) if runtime]


def _worst_ratios(ratios: Sequence[tuple[str, float, Latency]]) -> dict[Shape, str]:
    """Map each shape to the ratio that is farthest from 1, if that is beyond the tolerance."""
    worst: dict[Shape, tuple[float, str]] = {}
    for what, ratio, row in ratios:
        shape, off = (row.batch, row.length), max(ratio, 1 / ratio)
        if off > max(1 + TOLERANCE, worst.get(shape, (0.0, ""))[0]):
            worst[shape] = off, f"{what} is {ratio:.2f} at {_name(shape)}, expected 1"
    return {shape: reason for shape, (_, reason) in sorted(worst.items())}


def _join_shapes(shapes: Iterable[Shape]) -> str:
    return ", ".join(map(_name, shapes))


def _name(shape: Shape) -> str:
    return "the task's lengths" if shape == (0, 0) else f"{shape[0]} × {shape[1]}"
