"""The command `search`: the model within limits of time, size and score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files.paths import check_folder
from .options import Jobs, Json, OneOrMoreTasks, Quiet, Recipes, Seed, Teachers
from .requests import LimitOptions, OwnFileOptions, TrainingOptions, request_of
from .signatures import takes_records

if TYPE_CHECKING:
    from ..search.run import SearchResult

Trials = Annotated[
    int,
    typer.Option(min=1, help="Total trials, including those of earlier calls; repeated combinations do not count."),
]
Try = Annotated[
    list[str] | None,
    typer.Option(
        "--try",
        metavar="NAME=[VALUES]",
        help="What to vary besides the recipes: `student`, or a setting as in --set, e.g. 'distill.epochs=[1, 2]'; repeat for "
        "several.",
    ),
]


@takes_records
def search(
    recipes: Recipes,
    limits: LimitOptions,
    trials: Trials = 30,
    tries: Try = None,
    tasks: OneOrMoreTasks = None,
    *,
    own: OwnFileOptions,
    teacher: Teachers = None,
    seed: Seed = 0,
    training: TrainingOptions,
    jobs: Jobs = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the model that meets limits on latency, size and score: try recipes and settings, and choose on the tuning split.

    To continue a stopped search, repeat the command. To share the trials, run it several times at once on one --out.
    """
    request = request_of(recipes, tasks, own, teacher, training, seeds=(seed,), jobs=jobs)
    from ..model_choice import Limits
    from ..search.report import search_document, write_search
    from ..search.run import search as find
    from ..search.space import axis_of
    from .display import Display

    wanted = Limits(**vars(limits))
    axes = [axis_of(text) for text in tries or ()]
    check_folder(training.out, "--out")
    with Display(quiet=quiet) as display:
        outcome = find(request, wanted, axes, trials, display)
    document = search_document(outcome, request, wanted)
    written = write_search(document, request.root)
    if json:
        import json as encoder

        typer.echo(encoder.dumps(document, indent=1))
        return
    _print_outcome(outcome, document, request.root, trials)
    typer.echo(f"report: {written[1]}")


def _print_outcome(outcome: SearchResult, document: dict[str, Any], root: Path, trials: int) -> None:
    """Print the models that no other beats, the choice among them, and the command that ships it."""
    from rich.table import Table

    from ..search.report import HEADER, front_rows, shipped_by
    from .screen import console

    table = Table(*HEADER, box=None, pad_edge=False)
    for row in front_rows(document):
        table.add_row(*row)
    console().print(table)
    if len(outcome.trials) < trials:
        typer.echo(f"every combination was tried: {len(outcome.trials)}")
    typer.echo(f"choice: trial {outcome.choice.model.number}" + ("" if not outcome.choice.missed else ", the nearest"))
    for line in outcome.choice.missed:
        typer.echo(f"misses: {line}")
    if command := shipped_by(outcome, str(root)):
        typer.echo(f"ship:   {command}")
