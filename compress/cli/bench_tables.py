"""What `bench` prints: a table of times, below it what not to trust, and a table for each profile."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..bench.profile import Profile
    from ..report.bench import Measurements
    from ..results import Latency

NOTHING = "–"
TOO_NOISY = "too noisy"


def print_times(measured: Measurements) -> None:
    """One line for each model, thread count and shape; with rigor, below percentiles their intervals, and below every ratio of a
    shape whose A/A control is beyond ±3% `too noisy`."""
    from rich.markup import escape
    from rich.table import Table

    from .screen import console

    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    for title in ("threads", "batch x length", "CPU ms", "CPU speed-up", "p50 ms", "p90 ms", "p99 ms", "texts/s"):
        table.add_column(title, justify="right")
    for title in ("speed-up", "peak MB", "load ms"):
        table.add_column(title, justify="right")
    for found in measured.runtimes:
        noisy = measured.noisy(found)
        for name, runtime in found.items():
            for row in runtime.latency:
                memory, load = f"{runtime.peak_memory_bytes / 1e6:.0f}", f"{runtime.load_ms:.0f}"
                cells = _cells(row, noisy, intervals=measured.rigor is not None)
                table.add_row(escape(name), str(runtime.threads), *cells, memory, load)
    console().print(table)
    for warning in measured.warnings():
        console().print(warning, style="yellow")


def _cells(row: Latency, noisy: Container[tuple[int, int]], *, intervals: bool) -> tuple[str, ...]:
    shape = f"{row.batch} x {row.length}" if row.batch else "own lengths"
    mark = f"\n{TOO_NOISY}" if (row.batch, row.length) in noisy else ""
    ratios = [text if text == NOTHING else text + mark for text in map(_number, (row.cpu_speedup, row.speedup))]
    percentiles = ((row.p50, row.p50_interval), (row.p90, row.p90_interval), (row.p99, row.p99_interval))
    times = [_number(value) + (_ends(interval) if intervals else "") for value, interval in percentiles]
    return shape, _number(row.cpu_p50), ratios[0], *times, f"{row.examples_per_second:,.0f}", ratios[1]


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"\n{interval[0]:.2f}–{interval[1]:.2f}"


def print_profile(name: str, profile: Profile) -> None:
    """Its operators, and how far the model is from the arithmetic floor."""
    from rich.table import Table

    from .screen import console

    table = Table("operator", "group", box=None, pad_edge=False)
    for title in ("count", "ms", "share", "million MACs"):
        table.add_column(title, justify="right")
    for kind in profile.kinds:
        cells = (f"{kind.milliseconds:.3f}", f"{kind.share:.1%}", f"{kind.macs / 1e6:,.1f}" if kind.macs else "")
        table.add_row(kind.op, kind.group, str(kind.count), *cells)
    out = console()
    out.print(f"\n{name}, {profile.batch} x {profile.length}, 1 thread, {profile.runs} profiled runs", markup=False)
    out.print(table)
    shares = ", ".join(f"{group} {share:.1%}" for group, share in profile.groups.items())
    rates = ", ".join(f"{precision} {rate / 1e9:.1f}" for precision, rate in profile.rates.items())
    for line in (
        f"matmuls by weights (GEMM) {profile.gemm_share:.1%}; {shares}",
        f"operators {profile.operators_ms:.3f} ms; a whole run {profile.whole_ms:.3f} ms of CPU time without the profiler",
        f"arithmetic floor {profile.floor_ms:.3f} ms, of matmuls by weights {profile.matmuls_floor_ms:.3f} ms"
        f" (best measured, billion MACs/s: {rates})",
        f"distance: matmuls by weights {profile.matmuls_over_floor:.2f} x their floor,"
        f" a whole run {profile.whole_over_floor:.2f} x the floor",
    ):
        out.print(line, markup=False)
