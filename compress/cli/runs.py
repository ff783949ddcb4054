"""The commands `run`, `plan` and `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CheckFailed, CompressError
from ..files.paths import check_folder
from ..processes import ranks
from ..stats.flip_goals import in_words, outcome
from .options import (
    BenchRuns,
    BenchThreads,
    Fsdp,
    Jobs,
    Json,
    NoBench,
    OneOrMoreTasks,
    Quiet,
    Rebench,
    Recipes,
    Report,
    Student,
    Teachers,
    path_argument,
    path_option,
)
from .requests import LimitOptions, OwnFileOptions, SeedOptions, TrainingOptions, request_of
from .signatures import takes_records

if TYPE_CHECKING:
    from ..model_choice import Limits
    from ..pipeline import BenchSettings, Request
    from ..report import Recommendation
    from ..results import Result


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` and `plan`."""

    recipes: Recipes
    tasks: OneOrMoreTasks = None
    own: OwnFileOptions
    teacher: Teachers = None
    student: Student = None
    seeds: SeedOptions
    training: TrainingOptions
    jobs: Jobs = 1
    fsdp: Fsdp = False
    bench_threads: BenchThreads = None
    bench_runs: BenchRuns = None
    no_bench: NoBench = False
    rebench: Rebench = False
    report: Report = None
    limits: LimitOptions
    json: Json = False
    quiet: Quiet = False

    def request(self, **bench: Any) -> Request:
        """Return the request. `bench`: its fields on latency. Raises `CompressError`."""
        seeds, own = self.seeds, {"student": self.student, "jobs": self.jobs, "fsdp": self.fsdp}
        own |= {"seeds": seeds.numbers, "base_seed": seeds.base_seed}
        return request_of(self.recipes, self.tasks, self.own, self.teacher, self.training, **own, **bench)


@takes_records
def run(options: RunOptions) -> None:
    """Run recipes on a teacher: fine-tune, distil, export, quantize, measure, report.

    Finished stages are kept and shared. To continue an interrupted run, repeat the command.

    Under torchrun, all its processes train.
    """
    request, limits = _request(options)
    _run(request, options.report, limits, json=options.json, quiet=options.quiet)


def _request(options: RunOptions) -> tuple[Request, Limits | None]:
    """Return the request of `run` or `plan`, and the limits. Raises `CompressError`."""
    bench = _bench_settings(options.bench_runs, options.bench_threads, skipped=options.no_bench)
    request, limits = options.request(bench=bench, rebench=options.rebench), options.limits.limits()
    _check_measured(limits, bench)
    return request, limits


def _bench_settings(runs: int | None, threads: int | None, *, skipped: bool) -> BenchSettings | None:
    from ..pipeline import BenchSettings

    if not skipped:
        return BenchSettings(runs=runs or BenchSettings.runs, threads=threads or BenchSettings.threads)
    numbers = {"--bench-runs": runs, "--bench-threads": threads}
    if lost := next((option for option, number in numbers.items() if number is not None), None):
        raise CompressError(f"{lost} is for latency, which --no-bench leaves out; give one of the two")
    return None


def _check_measured(limits: Limits | None, bench: BenchSettings | None) -> None:
    """Raise `CompressError` for a limit of CPU time on one thread, if the run does not measure it."""
    if limits is None or limits.max_latency_ms is None or (bench is not None and bench.threads == 1):
        return
    option = "--no-bench" if bench is None else "--bench-threads"
    raise CompressError(f"--max-latency-ms: a limit of CPU time on one thread needs it measured; leave out {option}")


def _run(request: Request, report: Path | None, limits: Limits | None, *, json: bool, quiet: bool) -> None:
    from ..pipeline import run_all
    from ..report import doubts_latency, recommendation_of, ship_command, summary_table, tasks_of, write_report
    from .display import Display
    from .screen import console

    place = _report_place(request, report)
    with Display(quiet=quiet or not ranks.is_first()) as display:
        results = run_all(request, display)
    if not ranks.is_first():
        return
    runs = [request.root / result.run for result in results]
    folder = place or runs[0]
    tasks = tasks_of(results, runs)
    recommended, failure = None, None
    try:
        recommended = recommendation_of(tasks, limits, runs)
    except CompressError as error:  # the runs have their report all the same
        failure = error
    write_report(results, folder, folders=runs, recommended=recommended, tasks=tasks)
    if json:
        printed = "[" + ",\n".join(result.model_dump_json() for result in results) + "]"
        typer.echo(_with_recommendation("results", printed, recommended))
    else:
        console().print(summary_table(results, runs, tasks=tasks))
        if doubts_latency(tasks):
            typer.echo(
                "timing: to measure latency again, wait for a quiet machine and add --rebench to the same command"
            )
        for result, run_folder in zip(results, runs, strict=True):
            lines = [f"run:    {run_folder}", *(f"goal:   {line}" for line in _goals_met(result))]
            lines += [] if recommended else [f"ship:   {ship_command(result, result.final, str(run_folder))}"]
            typer.echo("\n".join(lines))
        _print_recommendation(recommended)
        typer.echo(f"report: {folder / 'report.html'}")
    if failure:
        raise failure
    _check_goals(results)


def _print_recommendation(recommended: Recommendation | None) -> None:
    if recommended is not None:
        for line in (*recommended.lines, *(f"ship:   {command}" for command in recommended.commands)):
            typer.echo(line)


def _with_recommendation(name: str, printed: str, recommended: Recommendation | None) -> str:
    """Return the JSON `printed`; if limits were given, as the field `name` of an object that also has the recommendation."""
    import json as encoder

    if recommended is None:
        return printed
    chosen = [{"run": run.run, "model": model.name, "precision": model.precision} for run, model in recommended.models]
    fields = {"missed": recommended.missed, "models": chosen, "lines": recommended.lines, "ship": recommended.commands}
    return f'{{"{name}": {printed}, "recommended": {encoder.dumps(fields, ensure_ascii=False)}}}'


def _report_place(request: Request, report: Path | None) -> Path | None:
    """Return the report's folder, checked before any work; None: the folder of the one run."""
    from ..report import check_report_folder

    several = any(len(set(values)) > 1 for values in (request.recipes, request.tasks, request.seeds))
    place = report or (request.root / "report" if several else None)
    if place is not None:
        check_folder(place, "--report" if report else "--out")
        check_report_folder(place)
    return place


def _check_goals(results: Sequence[Result]) -> None:
    """Raise `CheckFailed`, after everything was written and printed, if a search found no mix that meets its goal."""
    missed = [
        f"{result.run}: {model.name} {model.precision}: expected at most {in_words(model.info['goal'])}, found in the nearest "
        f"mix, which was kept, {outcome(model.info)}{_blocking_matmuls(model.info)}"
        for result in results
        for model in result.models
        if model.info.get("goal_met") is False
    ]
    if missed:
        raise CheckFailed("\n".join(missed))


def _blocking_matmuls(info: Mapping[str, Any]) -> str:
    names = info.get("blocking_matmuls")
    return f"; blocking matmuls: {', '.join(names)}" if names else ""


def _goals_met(result: Result) -> list[str]:
    """Return a line for each searched model that meets its goal."""
    return [
        f"{model.name} {model.precision}: at most {in_words(model.info['goal'])}, met with {outcome(model.info)}"
        for model in result.models
        if model.info.get("goal_met")
    ]


@takes_records
def plan(options: RunOptions) -> None:
    """Show what `run` would do: stages, cache hits, sizes and FLOPs. Runs and writes nothing.

    It takes the options of `run` and checks them. A note names those that change nothing of what is shown.
    """
    from ..pipeline import plan_all
    from .plan_totals import crowded_memory, training_total
    from .plans import plan_documents, print_plans

    request, _ = _request(options)
    _report_place(request, options.report)
    documents = plan_documents(plans := plan_all(request), request.root)
    if options.json:
        import json as encoder

        typer.echo(encoder.dumps(documents, indent=1))
    else:
        print_plans(documents)
        if total := training_total(plans, documents, request.root):
            typer.echo(total)
    crowded = crowded_memory(plans, documents, request.root, options.jobs)
    for line in filter(None, (crowded, _for_run_alone(options))):
        typer.echo(f"note: {line}", err=True)


def _for_run_alone(options: RunOptions) -> str | None:
    """Return a line on the options that change nothing of a plan, None if there are none."""
    values = {
        **vars(options.limits),
        "threads": options.training.threads,
        "fsdp": options.fsdp or None,
        "bench_threads": options.bench_threads,
        "bench_runs": options.bench_runs,
        "no_bench": options.no_bench or None,
        "rebench": options.rebench or None,
        "report": options.report,
    }
    names = [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None]
    if not names:
        return None
    from ..report.text.words import join_words

    verb = "matters" if len(names) == 1 else "matter"
    return f"{join_words(names)} {verb} to `run` alone: checked, and without effect on what a plan shows"


@takes_records
def report(
    runs: Annotated[list[Path], path_argument("RUN", help="Run folders or result files.")],
    out: Annotated[
        Path | None, path_option("--out", "-o", help="Folder for the report. Default: RUN, if it is one folder.")
    ] = None,
    *,
    limits: LimitOptions,
    json: Json = False,
) -> None:
    """Write report.md, report.html and the plots from finished runs, or again from a report's folder.

    With limits, say which model to ship.
    """
    from ..report import check_report_folder, collect, recommendation_of, summary_table, tasks_of, write_report
    from .screen import console

    wanted, results = limits.limits(), collect(runs)
    place = out or _only_folder(runs)
    check_report_folder(place)
    tasks = tasks_of(results, runs)
    recommended = recommendation_of(tasks, wanted, runs)
    written = write_report(results, place, folders=runs, recommended=recommended, tasks=tasks)
    if json:
        import json as encoder

        typer.echo(_with_recommendation("files", encoder.dumps([str(path) for path in written]), recommended))
        return
    console().print(summary_table(results, runs, tasks=tasks))
    _print_recommendation(recommended)
    for path in written:
        typer.echo(path)


def _only_folder(runs: list[Path]) -> Path:
    """Return the default folder of a report."""
    from ..results import RESULT, SEVERAL

    if len(runs) == 1 and any((runs[0] / name).is_file() for name in (RESULT, SEVERAL)):
        return runs[0]
    raise CompressError("--out: expected a folder for the report, unless RUN is the one folder of a run or a report")
