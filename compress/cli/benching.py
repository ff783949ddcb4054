"""The command `bench`: latency alone."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import CompressError
from ..files.paths import check_folder, display_path
from ..machine import MOST_THREADS
from .completion import complete_task
from .options import UngroupedJson, path_option

if TYPE_CHECKING:
    from ..report.bench import Measurements

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="[RUNTIME:]PATH",
        show_default=False,
        help="Bundles or .onnx files, run by ONNX Runtime unless prefixed with openvino-f32:, openvino-bf16: or torch:"
        " (checkpoint folders). The first is the baseline.",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="BATCHxLENGTH", help="Texts, and tokens of each; repeatable. Default: 1x32, 1x128, 32x128."
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="Also time single texts with the lengths of this task's tuning split.", autocompletion=complete_task
    ),
]
Threads = Annotated[
    list[str] | None,
    typer.Option("--threads", metavar="N|all", help="Threads per model; repeat to measure several. Default: 1."),
]
Profiled = Annotated[
    bool, typer.Option("--profile", help="Also time each kind of operator, on one thread, at each shape.")
]
Runs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum timed runs per model and shape. For texts with the task's own lengths, it is rounded up to a multiple of 64. "
        "Default: 36.",
        show_default=False,
    ),
]
Rigorous = Annotated[
    Literal["quick", "full"] | None,
    typer.Option(
        help="Instead of --runs. quick: at least 1,024 texts and 10 s per model and shape, over 3 process starts; full: 24,576"
        " texts, 600 s and 5 starts.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    path_option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Also write bench.md, bench.html and bench.json here, with plots over lengths, batches and threads.",
        show_default=False,
    ),
]


def bench(
    models: Models,
    shapes: Shapes = None,
    task: Task = None,
    data_dir: Annotated[Path | None, path_option(help="Folder of the task's data.", show_default=False)] = None,
    runs: Runs = None,
    rigor: Rigorous = None,
    threads: Threads = None,
    profile: Profiled = False,
    out: Out = None,
    json: UngroupedJson = False,
) -> None:
    """Measure only latency: one process per model, interleaved runs, and a second copy of the baseline to show the noise."""
    from ..bench import RIGOR, BenchSpec, measure
    from ..bench.candidates import find_candidates
    from ..bench.profile import profile as take_profile
    from ..machine import versions
    from ..provenance import running_code
    from ..report.bench import Measurements, check_bench_folder, write_bench
    from ..results import Machine
    from .bench_tables import print_measurements
    from .display import Display

    _check_beside(runs, rigor, data_dir, task)
    sizes, counts = _shapes(shapes), _threads(threads)
    candidates = find_candidates(models)
    if profile and all(candidate.runtime != "onnx" for candidate in candidates):
        raise CompressError("--profile: expected a model run by ONNX Runtime, found none")
    if out is not None:
        check_folder(out, "--out")
        check_bench_folder(out)
    if task is not None:
        from ..bench.lengths import with_lengths

        candidates = with_lengths(candidates, task, data_dir)
    with Display(quiet=json) as display:
        spec = BenchSpec(sizes, candidates[0].lengths, runs or BenchSpec.runs, rigor=RIGOR[rigor] if rigor else None)
        # First, as it takes seconds and refuses some models, while the rest may take hours.
        profiles = take_profile(candidates, sizes, display.progress) if profile else {}
        runtimes = [measure(candidates, replace(spec, threads=count), display.progress) for count in counts]
    measured = Measurements(
        runtimes,
        profiles,
        command=_command(),
        task=task,
        data_dir=None if data_dir is None else display_path(str(data_dir)),
        rigor=rigor,
        machine=Machine.here(),
        versions=versions(),
        code=running_code(),
    )
    written = [] if out is None else write_bench(measured, out)
    if json:
        _print_json(measured)
        return
    print_measurements(measured)
    for path in written:
        typer.echo(path)


def _command() -> str:
    """Return the command as given, with paths written as records name them."""
    return shlex.join(["compress", *map(_display_word, sys.argv[1:])])


def _display_word(word: str) -> str:
    """Write the path in a word as records name it, also in `torch:PATH`, `--out=PATH` and `-oPATH`."""
    if word.startswith("-o"):
        return "-o" + display_path(word[2:]) if word[2:] else word
    for mark in (":", "="):
        before, between, path = word.partition(mark)
        if between and "/" not in before and not before.startswith("~"):
            return before + mark + display_path(path)
    return display_path(word)


def _check_beside(runs: int | None, rigor: str | None, data_dir: Path | None, task: str | None) -> None:
    """Raise `CompressError` for options that do not go together."""
    if runs is not None and rigor is not None:
        raise CompressError(
            f"--runs: expected it without --rigor, which says when to stop; found --rigor {rigor} beside it"
        )
    if data_dir is not None and task is None:
        raise CompressError("--data-dir: expected --task beside it, found none")


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


def _print_json(measured: Measurements) -> None:
    import json

    typer.echo(json.dumps(measured.document(), indent=1, default=str))
