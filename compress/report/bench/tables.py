"""The figures behind each plot, and every measurement, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...bench import AGAIN
from ...results import Latency, Runtime
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table, text_cells
from .measurements import Measurements
from .sweeps import Point, Sweep

_TOO_NOISY = "too noisy"
_CONTROL = f"A/A: {AGAIN}"


def sweep_table(sweep: Sweep) -> Table:
    """Return the data of one plot."""
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
    """Return a line for each model, number of threads and shape, without columns that would be empty or constant."""
    threads, percentiles = _named_threads(measured), _percentiles(measured)
    columns = (
        Column("Model", numeric=False),
        *threads,
        Column("Shape", numeric=False),
        Column("CPU p50", "ms"),
        Column("Speed-up", "CPU"),
        Column("Clock p50", "ms"),
        *(Column(name, "ms") for name in percentiles),
        Column("Texts", "per s"),
        Column("Speed-up", "clock"),
    )
    lines = []
    for runtimes in measured.runtimes:
        noisy = measured.noisy(runtimes)
        for name, runtime in runtimes.items():
            for row in runtime.latency:
                heading = (*_heading(measured, name, runtime), Cell(numbers.shape(row.batch, row.length)))
                times = _time_cells(row, percentiles, noisy=(row.batch, row.length) in noisy)
                lines.append(Line((*heading, *times), _row_kind(measured, name)))
    return Table("Every measurement", columns, tuple(lines), headings=2 + len(threads))


def memory_table(measured: Measurements) -> Table:
    """Return a line for each model and number of threads."""
    threads = _named_threads(measured)
    columns = (Column("Model", numeric=False), *threads, Column("Peak memory", "MB"), Column("Load", "ms"))
    lines = []
    for runtimes in measured.runtimes:
        for name, runtime in runtimes.items():
            figures = text_cells(numbers.megabytes(runtime.peak_memory_bytes), numbers.significant(runtime.load_ms))
            lines.append(Line((*_heading(measured, name, runtime), *figures), _row_kind(measured, name)))
    return Table("Memory and loading", columns, tuple(lines), headings=1 + len(threads))


def _named_threads(measured: Measurements) -> tuple[Column, ...]:
    return (Column("Threads"),) if len(measured.runtimes) > 1 else ()


def _percentiles(measured: Measurements) -> list[str]:
    """The percentiles besides the p50 that a measurement has."""
    rows = [row for runtimes in measured.runtimes for runtime in runtimes.values() for row in runtime.latency]
    return [name for name in ("p90", "p99") if any(getattr(row, name) is not None for row in rows)]


def _heading(measured: Measurements, name: str, runtime: Runtime) -> tuple[Cell, ...]:
    threads = [str(runtime.threads)] if _named_threads(measured) else []
    return text_cells(_CONTROL if name == AGAIN else name, *threads)


def _row_kind(measured: Measurements, name: str) -> Literal["baseline", "model", "reference"]:
    return "reference" if name == AGAIN else "baseline" if name == measured.models[0] else "model"


def _time_cells(row: Latency, percentiles: Sequence[str], *, noisy: bool) -> tuple[Cell, ...]:
    note = _TOO_NOISY if noisy else ""
    cpu = NOTHING if row.cpu_p50 is None else numbers.significant(row.cpu_p50)
    cpu_ratio, ratio = (
        Cell(NOTHING) if ratio is None else Cell(f"{ratio:.2f}×", note) for ratio in (row.cpu_speedup, row.speedup)
    )
    clock = (_percentile(getattr(row, name), getattr(row, f"{name}_interval")) for name in ("p50", *percentiles))
    return (Cell(cpu), cpu_ratio, *clock, Cell(numbers.significant(row.examples_per_second)), ratio)


def _percentile(value: float | None, ends: tuple[float, float] | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(numbers.significant(value), _interval(ends) if ends else "")
