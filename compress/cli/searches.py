"""`search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files.paths import check_folder
from .options import (
    Corpus,
    DataDir,
    Dev,
    Jobs,
    Json,
    KindOfTask,
    Label,
    MaxLatency,
    MaxLength,
    MaxSize,
    MinScore,
    OneOrMoreTasks,
    Out,
    Overrides,
    Pair,
    Precision,
    Quiet,
    Recipes,
    Refit,
    Seed,
    Teachers,
    Text,
    Threads,
    Train,
    Tuning,
    request_of,
)

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


def search(
    recipes: Recipes,
    max_latency_ms: MaxLatency = None,
    max_size_mb: MaxSize = None,
    min_score: MinScore = None,
    trials: Trials = 30,
    tries: Try = None,
    tasks: OneOrMoreTasks = None,
    train: Train = None,
    dev: Dev = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    kind: KindOfTask = None,
    max_length: MaxLength = None,
    teacher: Teachers = None,
    seed: Seed = 0,
    data_dir: DataDir = None,
    tuning: Tuning = None,
    corpus: Corpus = None,
    out: Out = Path("runs"),
    precision: Precision = None,
    refit: Refit = False,
    overrides: Overrides = None,
    threads: Threads = None,
    jobs: Jobs = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the model that meets limits on latency, size and score: try recipes and settings, and choose on the tuning split.

    To continue a stopped search, repeat the command. To share the trials, run it several times at once on one --out.
    """
    request = request_of({**locals(), "student": None, "base_seed": None, "seeds": 1})
    from ..model_choice import Limits
    from ..search.report import HEADER, front_rows, search_document, shipped_by, write_search
    from ..search.run import search as find
    from ..search.space import axis_of
    from .display import Display
    from .screen import console

    limits = Limits(max_latency_ms, max_size_mb, min_score)
    axes = [axis_of(text) for text in tries or ()]
    check_folder(out, "--out")
    with Display(quiet=quiet) as display:
        outcome = find(request, limits, axes, trials, display)
    document = search_document(outcome, request, limits)
    written = write_search(document, request.root)
    if json:
        import json as encoder

        typer.echo(encoder.dumps(document, indent=1))
        return
    from rich.table import Table

    table = Table(*HEADER, box=None, pad_edge=False)
    for row in front_rows(document):
        table.add_row(*row)
    console().print(table)
    if len(outcome.trials) < trials:
        typer.echo(f"every combination was tried: {len(outcome.trials)}")
    typer.echo(f"choice: trial {outcome.choice.model.number}" + ("" if not outcome.choice.missed else ", the nearest"))
    for line in outcome.choice.missed:
        typer.echo(f"misses: {line}")
    if command := shipped_by(outcome, str(request.root)):
        typer.echo(f"ship:   {command}")
    typer.echo(f"report: {written[1]}")
