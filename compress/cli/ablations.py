"""The command `ablate`: run a recipe with and without each of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files.paths import check_folder
from ..processes import ranks
from .completion import complete_recipe
from .options import Fsdp, Json, OneOrMoreTasks, Quiet, Student, Teachers, path_option
from .requests import OwnFileOptions, SeedOptions, TrainingOptions, request_of
from .signatures import takes_records

if TYPE_CHECKING:
    from ..pipeline import Request
    from ..report.ablation import Ablation

Recipe = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="Recipe name or YAML file.", show_default=False, autocompletion=complete_recipe
    ),
]
Rows = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL",
        help="Row to run besides `full`, e.g. 'without augment', or 'student CARD' for the recipe with another student; "
        "repeat for several. Default: all rows.",
    ),
]
Report = Annotated[Path | None, path_option(help="Report folder. Default: OUT/ablation-RECIPE-TASKS.")]


@takes_records
def ablate(
    recipe: Recipe,
    tasks: OneOrMoreTasks = None,
    *,
    own: OwnFileOptions,
    rows: Rows = None,
    teacher: Teachers = None,
    student: Student = None,
    seeds: SeedOptions,
    training: TrainingOptions,
    fsdp: Fsdp = False,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what each part of a recipe contributes: run it whole, and without each part in turn.

    Each row's fp32 student is scored, without latency. Stages that rows share run once.
    """
    more = {"student": student, "seeds": seeds.numbers, "base_seed": seeds.base_seed, "fsdp": fsdp}
    request = request_of([recipe], tasks, own, teacher, training, **more)
    _ablate(request, tuple(rows or ()), report, json=json, quiet=quiet)


def _ablate(request: Request, rows: tuple[str, ...], report: Path | None, *, json: bool, quiet: bool) -> None:
    from ..pipeline.request import tasks_of
    from ..report.ablation import ablation_document, check_ablation_folder, write_ablation

    recipe = str(request.recipes[0])
    names = dict.fromkeys(spec.name for spec, _ in tasks_of(request))
    place = report or request.root / "-".join(["ablation", Path(recipe).stem, *names])
    check_folder(place, "--report" if report else "--out")
    check_ablation_folder(place)
    ablated = _run_ablation(recipe, rows, request, quiet=quiet or not ranks.is_first())
    if not ranks.is_first():
        return
    written = write_ablation(ablated, place)
    if json:
        import json as encoder

        typer.echo(encoder.dumps(ablation_document(ablated), indent=1))
    else:
        _print_ablation(ablated, written)


def _run_ablation(recipe: str, labels: tuple[str, ...], request: Request, *, quiet: bool) -> Ablation:
    """Run the rows with these labels and compare them."""
    from dataclasses import replace

    from ..pipeline.ablation.rows import chosen_rows
    from ..pipeline.ablation.run import command_line, run_rows
    from ..report.ablation import ablation_of
    from .display import Display

    rows = chosen_rows(recipe, request.overrides, labels, corpus=bool(request.corpus))
    command = command_line(recipe, request, labels)
    with Display(quiet=quiet) as display:
        results = run_rows(rows, replace(request, command=command), display)
    folders = [request.root / result.run for runs in results.values() for result in runs]
    return ablation_of(results, title=rows[0].recipe.title, command=command, folders=folders)


def _print_ablation(ablated: Ablation, written: list[Path]) -> None:
    from ..report.ablation import ablation_table, findings, guesses
    from .screen import console

    console().print(ablation_table(ablated))
    for line in (*guesses(ablated), *findings(ablated), *written):
        typer.echo(line)
