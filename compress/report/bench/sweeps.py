"""Times over lengths, over batch sizes and over threads: what varies, what is the same, and each model's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...bench import AGAIN
from ...results import Latency
from ...results.timing import headline, uses_cpu_time
from ..text import numbers
from .measurements import Measurements

Interval = tuple[float, float]
LENGTHS, BATCHES, THREADS = "lengths", "batch sizes", "threads"


@dataclass(frozen=True)
class Point:
    """`x`: tokens, texts or threads. `y` with its 95% interval, if there are enough runs for one, in the sweep's unit."""

    model: str
    x: int
    y: float
    interval: Interval | None
    speedup: float
    runs: int
    noisy: bool = False


@dataclass(frozen=True)
class Sweep:
    """`x` and `y` name the axes; `fixed` what all points share. Points are in the order of the models, then of `x`."""

    over: str
    title: str
    fixed: str
    x: str
    y: str
    points: tuple[Point, ...]
    control: tuple[Point, ...]  # the baseline measured again

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(point.model for point in self.points))


@dataclass(frozen=True)
class _Row:
    """One model at one shape and number of threads; `cpu`: whether CPU time is the figure to trust there."""

    model: str
    threads: int
    latency: Latency
    cpu: bool
    noisy: bool


@dataclass(frozen=True)
class _Kind:
    """`x`: what varies, with the name of its axis; `y`: the figure, its name and its unit."""

    over: str
    axis: str
    x: Callable[[_Row], int]
    y: Callable[[_Row], Point]
    unit: str = "ms"
    name: str = ""  # of the figure; empty: named after the clock
    per: str = ""  # what the time is divided by


def sweeps_of(measured: Measurements) -> list[Sweep]:
    """Return one sweep for each set of two or more measurements that differ in the length, the batch or the threads alone."""
    rows = [*_measured_rows(measured)]
    sized = [row for row in rows if row.latency.batch]
    return [*_over_lengths(sized), *_over_batches(sized), *_over_threads(rows)]


def _measured_rows(measured: Measurements) -> Iterator[_Row]:
    for runtimes in measured.runtimes:
        cpu, noisy = uses_cpu_time(runtimes.values()), measured.noisy(runtimes)
        for name, runtime in runtimes.items():
            for row in runtime.latency:
                yield _Row(name, runtime.threads, row, cpu, (row.batch, row.length) in noisy)


def _over_lengths(rows: Sequence[_Row]) -> Iterator[Sweep]:
    kind = _Kind(LENGTHS, "Length, tokens", lambda row: row.latency.length, _time)
    for (batch, threads), group in _group_rows(rows, lambda row: (row.latency.batch, row.threads)).items():
        yield from _sweep(kind, f"{_batch_text(batch)}, {_threads(threads)}", group)


def _over_batches(rows: Sequence[_Row]) -> Iterator[Sweep]:
    kind = _Kind(BATCHES, "Texts of a batch", lambda row: row.latency.batch, _time_per_text, per=" per text")
    for (length, threads), group in _group_rows(rows, lambda row: (row.latency.length, row.threads)).items():
        yield from _sweep(kind, f"{length} tokens, {_threads(threads)}", group)


def _over_threads(rows: Sequence[_Row]) -> Iterator[Sweep]:
    kind = _Kind(THREADS, "Threads", lambda row: row.threads, _throughput, "texts per second", "Throughput")
    for (batch, length), group in _group_rows(rows, lambda row: (row.latency.batch, row.latency.length)).items():
        fixed = f"{_batch_text(batch)}, {length} tokens" if batch else "one text at a time, the task's own lengths"
        yield from _sweep(kind, fixed, group)


def _group_rows(rows: Sequence[_Row], key: Callable[[_Row], tuple[int, int]]) -> dict[tuple[int, int], list[_Row]]:
    groups: dict[tuple[int, int], list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))


def _sweep(kind: _Kind, fixed: str, rows: Sequence[_Row]) -> Iterator[Sweep]:
    if len({kind.x(row) for row in rows}) < 2:
        return
    models = list(dict.fromkeys(row.model for row in rows))
    ordered = sorted(rows, key=lambda row: (models.index(row.model), kind.x(row)))
    points = [replace(kind.y(row), x=kind.x(row), noisy=row.noisy) for row in ordered]
    name = kind.name or ("CPU time" if all(row.cpu for row in rows) else "Latency") + kind.per
    yield Sweep(
        kind.over,
        f"{name} over {kind.over}",
        fixed,
        kind.axis,
        f"{name}, {kind.unit}",
        tuple(point for point in points if point.model != AGAIN),
        tuple(point for point in points if point.model == AGAIN),
    )


def _time(row: _Row) -> Point:
    """Return milliseconds of a run: p50 of CPU time, or of wall time."""
    value, speedup = headline(row.latency, cpu=row.cpu)
    ends, half = row.latency.p50_interval, row.latency.half_width
    if row.cpu:
        ends = None if half is None else (value * max(0.0, 1 - half), value * (1 + half))
    return Point(row.model, 0, value, ends, speedup, row.latency.runs)


def _time_per_text(row: _Row) -> Point:
    whole, texts = _time(row), row.latency.batch
    ends = whole.interval and (whole.interval[0] / texts, whole.interval[1] / texts)
    return replace(whole, y=whole.y / texts, interval=ends)


def _throughput(row: _Row) -> Point:
    """Return the throughput in wall time, of a run that takes its p50."""
    latency, texts = row.latency, 1000 * max(1, row.latency.batch)
    ends = latency.p50_interval and (texts / latency.p50_interval[1], texts / latency.p50_interval[0])
    return Point(row.model, 0, texts / latency.p50, ends, latency.speedup, latency.runs)


def _batch_text(batch: int) -> str:
    return "one text at a time" if batch == 1 else f"batches of {batch}"


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def describe(sweep: Sweep) -> str:
    """Describe the plot in words, as its alternative text."""
    lines = (
        f"{model}: {', '.join(f'{numbers.significant(p.y)} at {p.x}' for p in sweep.points if p.model == model)}"
        for model in sweep.models
    )
    return f"{sweep.title}, {sweep.fixed}. {sweep.y}; {'; '.join(lines)}."
