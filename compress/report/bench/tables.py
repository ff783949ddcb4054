"""The figures behind each plot, and every measurement, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from ...bench import AGAIN
from ...results import Latency
from .. import numbers
from ..tables import NOTHING, Cell, Column, Line, Table, text_cells
from .measurements import Measurements
from .sweeps import Point, Sweep

_TOO_NOISY = "too noisy"
_CONTROL = f"A/A: {AGAIN}"


def sweep_table(sweep: Sweep) -> Table:
    """The data of one plot."""
    columns = (
        Column("Model", numeric=False),
        _column(sweep.x),
        _column(sweep.y),
        Column("95% interval"),
        Column("Speed-up"),
        Column("Runs"),
    )
    lines = [Line(_cells(point.model, point)) for point in sweep.points]
    lines += [Line(_cells(_CONTROL, point), "reference") for point in sweep.control]
    return Table(f"{sweep.title}: {sweep.fixed}", columns, tuple(lines), headings=2)


def _column(axis: str) -> Column:
    name, _, unit = axis.partition(", ")
    return Column(name, unit)


def _cells(name: str, point: Point) -> tuple[Cell, ...]:
    ends = NOTHING if point.interval is None else _interval(point.interval)
    speedup = Cell(f"{point.speedup:.2f}×", _TOO_NOISY if point.noisy else "")
    return (*text_cells(name, f"{point.x:,}", numbers.significant(point.y), ends), speedup, Cell(f"{point.runs:,}"))


def _interval(ends: tuple[float, float]) -> str:
    return f"{numbers.significant(ends[0])} to {numbers.significant(ends[1])}"


def main_table(measured: Measurements) -> Table:
    """A line for each model, number of threads and shape."""
    columns = (
        Column("Model", numeric=False),
        Column("Threads"),
        Column("Batch × length", numeric=False),
        Column("CPU p50", "ms"),
        Column("Speed-up", "CPU"),
        Column("Clock p50", "ms"),
        Column("p90", "ms"),
        Column("p99", "ms"),
        Column("Texts", "per s"),
        Column("Speed-up", "clock"),
        Column("Peak memory", "MB"),
        Column("Load", "ms"),
    )
    return Table("Every measurement", columns, tuple(_lines(measured)), headings=3)


def _lines(measured: Measurements) -> Iterator[Line]:
    for found in measured.runtimes:
        noisy = measured.noisy(found)
        for number, (name, runtime) in enumerate(found.items()):
            kind = "reference" if name == AGAIN else "baseline" if number == 0 else "model"
            ends = text_cells(numbers.megabytes(runtime.peak_memory_bytes), numbers.significant(runtime.load_ms))
            for row in runtime.latency:
                heading = text_cells(_CONTROL if name == AGAIN else name, str(runtime.threads), _shape(row))
                yield Line((*heading, *_times(row, (row.batch, row.length) in noisy), *ends), kind)


def _shape(row: Latency) -> str:
    return numbers.shape(row.batch, row.length)


def _times(row: Latency, noisy: bool) -> tuple[Cell, ...]:
    note = _TOO_NOISY if noisy else ""
    cpu = NOTHING if row.cpu_p50 is None else numbers.significant(row.cpu_p50)
    ratios = (
        Cell(NOTHING) if ratio is None else Cell(f"{ratio:.2f}×", note) for ratio in (row.cpu_speedup, row.speedup)
    )
    cpu_ratio, ratio = ratios
    clock = (
        _percentile(value, ends)
        for value, ends in ((row.p50, row.p50_interval), (row.p90, row.p90_interval), (row.p99, row.p99_interval))
    )
    return (Cell(cpu), cpu_ratio, *clock, Cell(numbers.significant(row.examples_per_second)), ratio)


def _percentile(value: float | None, ends: tuple[float, float] | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(numbers.significant(value), _interval(ends) if ends else "")
