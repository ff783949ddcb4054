"""`bench`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CompressError
from ..spec.limits import MOST_THREADS
from .bundles import Json

if TYPE_CHECKING:
    from ..bench.profile import Profile
    from ..results import Latency, Runtime


Models = Annotated[
    list[str],
    typer.Argument(
        metavar="[RUNTIME:]PATH",
        show_default=False,
        help="Bundles or .onnx files, run by ONNX Runtime; openvino-f32:, openvino-bf16: and torch: (checkpoint"
        " folders) name another runtime. The first is the baseline.",
    ),
]
Shapes = Annotated[
    list[str] | None, typer.Option("--shape", metavar="BATCHxLENGTH", help="Default: 1x32, 1x128, 32x128.")
]
Task = Annotated[
    str | None, typer.Option(help="Also one text at a time, as long as this task's own (never the reported split).")
]
Threads = Annotated[
    list[str] | None,
    typer.Option("--threads", metavar="N|all", help="Threads per model; repeatable, one measurement each. Default: 1."),
]
Profiled = Annotated[
    bool, typer.Option("--profile", help="Also the time per kind of operator, on one thread, at each shape.")
]


def bench(
    models: Models,
    shapes: Shapes = None,
    task: Task = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the task's data.", show_default=False)] = None,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs per model and shape.")] = 30,
    threads: Threads = None,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Measure latency only: one process per model, interleaved, with the baseline measured against itself."""
    from ..bench import BenchSpec, measure
    from ..bench.candidates import find_candidates
    from ..bench.profile import profile as take_profile
    from .display import Display

    sizes, counts = _shapes(shapes), _threads(threads)
    candidates = find_candidates(models)
    if data_dir is not None and task is None:
        raise CompressError("--data-dir: expected --task beside it, found none")
    if profile and all(candidate.runtime != "onnx" for candidate in candidates):
        raise CompressError("--profile: expected a model run by ONNX Runtime, found none")
    if task is not None:
        from ..bench.lengths import with_lengths

        candidates = with_lengths(candidates, task, data_dir)
    with Display(quiet=json) as shown:
        measured = [
            measure(candidates, BenchSpec(sizes, candidates[0].lengths, runs, threads=count), shown.progress)
            for count in counts
        ]
        profiles = take_profile(candidates, sizes, shown.progress) if profile else {}
    if json:
        _print_json({"task": task, "data_dir": data_dir}, measured, profiles)
    else:
        _print_tables(measured, profiles)


def _shapes(texts: list[str] | None) -> tuple[tuple[int, int], ...]:
    shapes = []
    for text in texts or ("1x32", "1x128", "32x128"):
        batch, _, length = text.partition("x")
        if not (batch.isdecimal() and length.isdecimal() and int(batch) and int(length)):
            raise CompressError(f"--shape: expected BATCHxLENGTH, two whole numbers such as 1x32; found {text!r}")
        shapes.append((int(batch), int(length)))
    return tuple(dict.fromkeys(shapes))


def _threads(texts: list[str] | None) -> tuple[int, ...]:
    from ..machine import usable_cores

    counts = []
    for text in texts or ("1",):
        if text != "all" and not (text.isdecimal() and 1 <= int(text) <= MOST_THREADS):
            raise CompressError(
                f"--threads: expected a whole number of at least 1 and at most {MOST_THREADS}, or all; found {text!r}"
            )
        counts.append(usable_cores() if text == "all" else int(text))
    return tuple(dict.fromkeys(counts))


def _print_json(
    settings: dict[str, Any], measured: list[dict[str, Runtime]], profiles: dict[str, tuple[Profile, ...]]
) -> None:
    import json

    from ..machine import versions
    from ..provenance import running_code
    from ..results import Machine

    document = {
        **settings,
        "machine": Machine.here().model_dump(mode="json"),
        "versions": versions(),
        "code": running_code().model_dump(mode="json"),
        "latency": [
            {"name": name, **runtime.model_dump(mode="json")} for found in measured for name, runtime in found.items()
        ],
        "profiles": [
            {"name": name, **asdict(profile), "gemm_share": profile.gemm_share}
            for name, found in profiles.items()
            for profile in found
        ],
    }
    typer.echo(json.dumps(document, indent=1, default=str))


def _print_tables(measured: list[dict[str, Runtime]], profiles: dict[str, tuple[Profile, ...]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from .display import console

    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    for title in ("threads", "batch x length", "CPU ms", "CPU speed-up", "p50 ms", "p90 ms", "p99 ms", "texts/s"):
        table.add_column(title, justify="right")
    for title in ("speed-up", "peak MB", "load ms"):
        table.add_column(title, justify="right")
    for name, runtime in ((name, runtime) for found in measured for name, runtime in found.items()):
        for row in runtime.latency:
            memory, load = f"{runtime.peak_memory_bytes / 1e6:.0f}", f"{runtime.load_ms:.0f}"
            table.add_row(escape(name), str(runtime.threads), *_cells(row), memory, load)
    console().print(table)
    for found in measured:
        if warning := _warning(found):
            console().print(warning, style="yellow")
    for name, found in profiles.items():
        for profile in found:
            _print_profile(name, profile)


def _warning(measured: dict[str, Runtime]) -> str | None:
    """Which of the figures not to trust, by the control and by wall over CPU time."""
    from ..bench import AGAIN
    from ..timing import doubts, uses_cpu_time

    runtimes = [runtime for name, runtime in measured.items() if name != AGAIN]
    noise = measured[AGAIN].latency if AGAIN in measured else ()
    shapes = {(row.batch, row.length) for runtime in runtimes for row in runtime.latency}
    return doubts(noise, runtimes).warning(shapes, cpu=uses_cpu_time(runtimes))


def _cells(row: Latency) -> tuple[str, ...]:
    shape = f"{row.batch} x {row.length}" if row.batch else "own lengths"
    cpu = ("–" if value is None else f"{value:.2f}" for value in (row.cpu_p50, row.cpu_speedup))
    cpu_ms, cpu_speedup = cpu
    times = (f"{value:.2f}" for value in (row.p50, row.p90, row.p99))
    return shape, cpu_ms, cpu_speedup, *times, f"{row.examples_per_second:,.0f}", f"{row.speedup:.2f}"


def _print_profile(name: str, profile: Profile) -> None:
    from rich.table import Table

    from .display import console

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
