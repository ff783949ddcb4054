"""`run`, `plan` and `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import processes
from ..errors import CheckFailed, CompressError
from ..goals import in_words, outcome
from ..paths import check_folder
from ..spec.limits import LARGEST_SEED, MOST_SEEDS, MOST_THREADS

if TYPE_CHECKING:
    from ..pipeline import Request
    from ..results import Result

Recipes = Annotated[list[str], typer.Argument(metavar="RECIPE", help="Recipe names or YAML files.", show_default=False)]
Tasks = Annotated[
    list[str], typer.Option("--task", "-t", help="Task name or YAML file; repeat for several.", show_default=False)
]
OneOrMoreTasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task", "-t", help="Task name or YAML file; repeat for several. Your own files instead: --train and --dev."
    ),
]
OWN_FILES = "Your own files, in place of a task"
Train = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Labelled examples (.csv, .tsv, .jsonl, .parquet) to train and choose on.",
        rich_help_panel=OWN_FILES,
    ),
]
Dev = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Labelled examples to report scores on, with the same columns.", rich_help_panel=OWN_FILES
    ),
]
Text = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the texts. Default: text.", rich_help_panel=OWN_FILES),
]
Pair = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the second texts, for pairs.", rich_help_panel=OWN_FILES),
]
Label = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the labels or scores. Default: label.", rich_help_panel=OWN_FILES),
]
KindOfTask = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="classification or regression. Default: regression where the labels are numbers with a decimal point.",
        rich_help_panel=OWN_FILES,
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(min=1, help="Tokens; longer texts are cut. Default: 128.", rich_help_panel=OWN_FILES),
]
Teacher = Annotated[
    str | None,
    typer.Option(
        help="Teacher card, checkpoint folder, or the hub's OWNER/NAME or OWNER/NAME@REVISION. Default: the recipe's.",
        rich_help_panel="Models and stages",
    ),
]
Student = Annotated[
    str | None,
    typer.Option(
        help="Student card. Default: the recipe's for the teacher's depth.", rich_help_panel="Models and stages"
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, max=MOST_SEEDS, help="Run with this many seeds, from --seed on.", rich_help_panel="Seeds")
]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="First seed.", rich_help_panel="Seeds")]
BaseSeed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=LARGEST_SEED,
        help="Seed of the teacher, the general stage and the augmentation, which all seeds then share.",
        rich_help_panel="Seeds",
    ),
]
Corpus = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="Plain text for the stages that need it: files (.txt, .xz, .gz, .zst), folders, or "
        "hub:OWNER/NAME@REVISION; repeat for several.",
        rich_help_panel="Models and stages",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of GLUE's official files, or a saved `datasets` folder.", rich_help_panel="Data"),
]
Tuning = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Examples to choose checkpoints and settings on, in the format of the task's files. Default: held out of train.",
        rich_help_panel="Data",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="Where runs and the store of artefacts are kept.", rich_help_panel="Output")
]
Precision = Annotated[
    str | None, typer.Option(help="fp32, bf16 or auto. Default: the recipe's.", rich_help_panel="Models and stages")
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit", help="Fine-tune a teacher that is fine-tuned already.", rich_help_panel="Models and stages"
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a field of the recipe, e.g. distill.epochs=5.",
        rich_help_panel="Models and stages",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Threads for training and evaluation. Default: the usable cores.",
        rich_help_panel="Machine",
    ),
]
Fsdp = Annotated[
    bool,
    typer.Option(
        "--fsdp",
        help="Under torchrun: split weights and optimizer among the processes that train.",
        rich_help_panel="Machine",
    ),
]
BenchThreads = Annotated[
    int, typer.Option(min=1, max=MOST_THREADS, help="Threads for latency.", rich_help_panel="Machine")
]
BenchRuns = Annotated[int, typer.Option(min=1, help="Timed runs per model and shape.", rich_help_panel="Machine")]
NoBench = Annotated[
    bool,
    typer.Option(
        "--no-bench", help="Leave latency out: accuracy, fidelity and sizes alone.", rich_help_panel="Machine"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel="Output")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress; notes are still shown.", rich_help_panel="Output")
]
Report = Annotated[
    Path | None,
    typer.Option(
        help="Where the report goes. Default: the run's folder, or OUT/report for several.", rich_help_panel="Output"
    ),
]


def seed_range(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def checked_precision(precision: str | None) -> str | None:
    """Raises `CompressError` for one that training does not know."""
    if precision not in (None, "auto", "fp32", "bf16"):
        raise CompressError(f"--precision: expected fp32, bf16 or auto; found {precision!r}")
    return precision


def run(
    recipes: Recipes,
    tasks: OneOrMoreTasks = None,
    train: Train = None,
    dev: Dev = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    kind: KindOfTask = None,
    max_length: MaxLength = None,
    teacher: Teacher = None,
    student: Student = None,
    seeds: Seeds = 1,
    seed: Seed = 0,
    base_seed: BaseSeed = None,
    data_dir: DataDir = None,
    tuning: Tuning = None,
    corpus: Corpus = None,
    out: Out = Path("runs"),
    precision: Precision = None,
    refit: Refit = False,
    overrides: Overrides = None,
    threads: Threads = None,
    fsdp: Fsdp = False,
    bench_threads: BenchThreads = 1,
    bench_runs: BenchRuns = 30,
    no_bench: NoBench = False,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Carry a teacher through recipes: fine-tune, distil, export, quantize, measure, report.

    Finished stages are kept and shared; an interrupted run continues with the same command.

    Under torchrun, all of its processes train.
    """
    from ..pipeline import BenchSettings, Request
    from ..tasks import own_files

    request = Request(
        recipes=tuple(recipes),
        tasks=tuple(tasks or ()),
        own=own_files(train=train, dev=dev, text=text, pair=pair, label=label, kind=kind, max_length=max_length),
        teacher=teacher,
        student=student,
        seeds=seed_range(seed, seeds),
        base_seed=base_seed,
        data_dir=data_dir,
        tuning=tuning,
        corpus=tuple(corpus or ()),
        root=out,
        precision=checked_precision(precision),
        refit=refit,
        overrides=tuple(overrides or ()),
        threads=threads,
        fsdp=fsdp,
        bench=None if no_bench else BenchSettings(runs=bench_runs, threads=bench_threads),
    )
    _run(request, report, json=json, quiet=quiet)


def _run(request: Request, report: Path | None, *, json: bool, quiet: bool) -> None:
    from ..pipeline import run_all
    from ..report import summary_table, write_report
    from .display import Display, console

    place = _report_place(request, report)
    with Display(quiet=quiet or not processes.is_first()) as display:
        results = run_all(request, display)
    if not processes.is_first():
        return
    runs = [request.root / result.run for result in results]
    folder = place or runs[0]
    write_report(results, folder, folders=runs)
    if json:
        typer.echo("[" + ",\n".join(result.model_dump_json() for result in results) + "]")
    else:
        console().print(summary_table(results, runs))
        for result, made in zip(results, runs, strict=True):
            typer.echo("\n".join([f"run:    {made}", *(f"goal:   {line}" for line in _goals_met(result))]))
        typer.echo(f"report: {folder / 'report.html'}")
    _check_goals(results)


def _report_place(request: Request, report: Path | None) -> Path | None:
    """Where the report goes, seen to before any work; None: to the folder of the one run."""
    from ..report import check_report_folder

    several = any(len(set(given)) > 1 for given in (request.recipes, request.tasks, request.seeds))
    place = report or (request.root / "report" if several else None)
    if place is not None:
        check_folder(place, "--report" if report else "--out")
        check_report_folder(place)
    return place


def _check_goals(results: Sequence[Result]) -> None:
    """CheckFailed, after all was made and told: a search found no mix that meets its goal."""
    missed = [
        f"{result.run}: {model.name} {model.precision}: expected at most {in_words(model.info['goal'])}, found in the nearest "
        f"mix, which was kept, {outcome(model.info)}{_in_the_way(model.info)}"
        for result in results
        for model in result.models
        if model.info.get("goal_met") is False
    ]
    if missed:
        raise CheckFailed("\n".join(missed))


def _in_the_way(info: Mapping[str, Any]) -> str:
    names = info.get("blocking_matmuls")
    return f"; blocking matmuls: {', '.join(names)}" if names else ""


def _goals_met(result: Result) -> list[str]:
    """A line for each searched model that keeps its goal."""
    return [
        f"{model.name} {model.precision}: at most {in_words(model.info['goal'])}, met with {outcome(model.info)}"
        for model in result.models
        if model.info.get("goal_met")
    ]


def plan(
    recipes: Recipes,
    tasks: OneOrMoreTasks = None,
    train: Train = None,
    dev: Dev = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    kind: KindOfTask = None,
    max_length: MaxLength = None,
    teacher: Teacher = None,
    student: Student = None,
    seeds: Seeds = 1,
    seed: Seed = 0,
    base_seed: BaseSeed = None,
    data_dir: DataDir = None,
    tuning: Tuning = None,
    corpus: Corpus = None,
    out: Out = Path("runs"),
    precision: Precision = None,
    refit: Refit = False,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Show what `run` would do: stages, what is cached, sizes and FLOPs. Runs and writes nothing."""
    from ..pipeline import Request, plan_all
    from ..tasks import own_files
    from .plans import plan_documents, print_plans

    request = Request(
        recipes=tuple(recipes),
        tasks=tuple(tasks or ()),
        own=own_files(train=train, dev=dev, text=text, pair=pair, label=label, kind=kind, max_length=max_length),
        teacher=teacher,
        student=student,
        seeds=seed_range(seed, seeds),
        base_seed=base_seed,
        data_dir=data_dir,
        tuning=tuning,
        corpus=tuple(corpus or ()),
        root=out,
        precision=checked_precision(precision),
        refit=refit,
        overrides=tuple(overrides or ()),
    )
    documents = plan_documents(plan_all(request), out)
    if json:
        import json as encoder

        typer.echo(encoder.dumps(documents, indent=1))
    else:
        print_plans(documents)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders or result files.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the report. Default: RUN, where it is one folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Write report.md, report.html and the plots from finished runs, or again from a report's own folder."""
    from ..report import collect, summary_table, write_report
    from .display import console

    results = collect(runs)
    written = write_report(results, out or _only_folder(runs), folders=runs)
    if json:
        import json as encoder

        typer.echo(encoder.dumps([str(path) for path in written]))
        return
    console().print(summary_table(results, runs))
    for path in written:
        typer.echo(path)


def _only_folder(runs: list[Path]) -> Path:
    """Where a report goes that was not told where."""
    from ..results import RESULT, SEVERAL

    if len(runs) == 1 and any((runs[0] / name).is_file() for name in (RESULT, SEVERAL)):
        return runs[0]
    raise CompressError("--out: expected a folder for the report, unless RUN is the one folder of a run or a report")
