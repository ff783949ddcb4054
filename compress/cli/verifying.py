"""The command `verify`: the checks of a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import CheckFailed
from .completion import complete_task
from .options import Bundle, RuntimeThreads, Tuning, UngroupedJson, path_option
from .requests import OwnFileOptions
from .screen import leave_stdout
from .signatures import takes_records


@takes_records
def verify(
    bundle: Bundle,
    own: OwnFileOptions,
    task: Annotated[
        str | None,
        typer.Option(help="Recompute the scores on this task's reported split.", autocompletion=complete_task),
    ] = None,
    data_dir: Annotated[Path | None, path_option(help="Folder of the task's data, to recompute scores.")] = None,
    tuning: Tuning = None,
    threads: RuntimeThreads = None,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Also simulate int8 on the other kind of x86 CPU: with or without VNNI."),
    ] = False,
    json: UngroupedJson = False,
) -> None:
    """Check a bundle on this CPU: hashes, ONNX checker, labels, answers, and scores if data is given.

    For a bundle made from files of your own, give --train, --dev and the columns of its `compress run`; the scores on --dev are recomputed.
    Give that run's --tuning, too: without it, the data count as changed.
    """
    from ..bundle import verify as check_bundle

    data = {"task": task, "data_dir": data_dir, "own": own.files(), "tuning": tuning}
    report = check_bundle(bundle, **data, threads=threads, simulate=simulate)
    if json:
        lines = [report.model_dump_json(indent=1)]
    else:
        lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in report.checks]
        lines += [f"note  {note}" for note in report.notes]
    try:
        for line in lines:
            typer.echo(line)
    except BrokenPipeError:  # the outcome of the checks is reported all the same
        leave_stdout()
    if failed := sum(not check.passed for check in report.checks):
        raise CheckFailed(f"{bundle}: {failed} of {len(report.checks)} checks failed")
