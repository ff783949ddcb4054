"""`ablate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .runs import (
    BaseSeed,
    Corpus,
    DataDir,
    Json,
    Out,
    Overrides,
    Precision,
    Quiet,
    Refit,
    Seed,
    Seeds,
    Student,
    Tasks,
    Teacher,
    Threads,
    _request,
)

Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="Recipe name or YAML file.", show_default=False)]
Rows = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL", help="Run this row beside `full`, e.g. 'without augment'; repeat for several. Default: all."
    ),
]
Report = Annotated[Path | None, typer.Option(help="Where the report goes. Default: OUT/ablation-RECIPE-TASKS.")]


def ablate(
    recipe: Recipe,
    tasks: Tasks,
    rows: Rows = None,
    teacher: Teacher = None,
    student: Student = None,
    seeds: Seeds = 1,
    seed: Seed = 0,
    base_seed: BaseSeed = None,
    data_dir: DataDir = None,
    corpus: Corpus = None,
    out: Out = Path("runs"),
    precision: Precision = None,
    refit: Refit = False,
    overrides: Overrides = None,
    threads: Threads = None,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what each part of a recipe is worth: run it whole, and without one part at a time.

    The fp32 student of each is scored, without latency. Stages that rows share are made once.
    """
    from dataclasses import replace

    from ..pipeline import ablation
    from ..report.ablation import ablation_document, ablation_of, ablation_table, findings, write_ablation
    from .display import Display, console

    request = _request({**locals(), "recipes": [recipe]})
    labels = tuple(rows or ())
    found = ablation.choose(ablation.rows(recipe, request.overrides, corpus=bool(corpus)), labels)
    request = replace(request, command=ablation.command_line(recipe, request, labels))
    with Display(quiet=quiet) as display:
        results = ablation.run_rows(found, request, display)
    folders = [out / result.run for made in results.values() for result in made]
    command = request.command or ""
    ablated = ablation_of(results, title=found[0].recipe.title, command=command, folders=folders)
    names = [Path(recipe).stem, *ablated.tasks]
    written = write_ablation(ablated, report or out / f"ablation-{'-'.join(names)}")
    if json:
        import json as encoder

        typer.echo(encoder.dumps(ablation_document(ablated), indent=1))
        return
    console().print(ablation_table(ablated))
    for sentence in findings(ablated):
        typer.echo(sentence)
    for path in written:
        typer.echo(path)
