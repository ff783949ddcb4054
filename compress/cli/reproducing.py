"""The command `reproduce`: rerun the runs of a report, and compare."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CheckFailed, CompressError
from ..machine import MOST_THREADS
from . import runs
from .options import Json, Quiet, path_argument, path_option
from .signatures import call
from .words import check_words, usage_message

if TYPE_CHECKING:
    from rich.table import Table

    from ..pipeline import Request
    from ..reproduction import Condition, Figure, MovedData, ReproducedRun, Reproduction, Rerun
    from ..results import Result

_UsageError: Any = typer.BadParameter.__bases__[0]  # typer gives it no public name

Source = Annotated[
    Path,
    path_argument("REPORT_OR_RUN", help="Folder of a report, a run or several runs."),
]
Out = Annotated[
    Path,
    path_option("--out", "-o", help="Folder for the new runs and their artefact store.", rich_help_panel="Output"),
]
_ELSEWHERE = "New places of data that have moved since"
DataDir = Annotated[Path | None, path_option(help="As in `compress run`.", rich_help_panel=_ELSEWHERE)]
File = Annotated[Path | None, path_option(metavar="FILE", help="As in `compress run`.", rich_help_panel=_ELSEWHERE)]
Corpus = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="As in `compress run`; repeat for several.", rich_help_panel=_ELSEWHERE),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Threads for training and evaluation. Default: as recorded.",
        rich_help_panel="Machine",
    ),
]


def reproduce(
    source: Source,
    out: Out = Path("reproduced"),
    data_dir: DataDir = None,
    train: File = None,
    dev: File = None,
    tuning: File = None,
    corpus: Corpus = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rerun the commands recorded in a report, and compare every figure with the recorded one.

    Times are not measured again. If interrupted, repeat the command to continue.
    """
    from ..reproduction import MovedData, check_reruns, compare_reruns, rerun_all
    from .display import Display
    from .screen import console

    moved = MovedData(data_dir, train, dev, tuning, tuple(corpus) if corpus else None)
    reruns = plan_reruns(source, moved, out, threads)
    check_reruns(reruns, source)
    with Display(quiet=quiet) as display:
        for rerun in reruns:
            for line in rerun.changed:
                display.notice(f"{rerun.recorded.run}: {line}")
        results = rerun_all(reruns, display)
    reproduction = compare_reruns(reruns, results, source)
    if json:
        typer.echo(reproduction.model_dump_json(indent=1))
    else:
        for line in _summary_lines(reproduction):
            typer.echo(line)
        console().print(_table(reproduction))
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in reproduction.verdicts.items()))
    if failed := reproduction.verdicts.get("differs"):
        raise CheckFailed(f"{source}: {failed} of {sum(reproduction.verdicts.values())} figures differ")


def plan_reruns(source: Path, moved: MovedData, out: Path, threads: int | None) -> list[Rerun]:
    """Plan a rerun for each result in `source`, checking commands, files and data. Raises `CompressError`."""
    from ..report import collect
    from ..reproduction import check_moved, rerun_of

    recorded = collect([source])
    words = [_naming_run(source, result, words_of, result.command) for result in recorded]
    check_moved(moved, words)
    folder = source if source.is_dir() else source.parent
    reruns = []
    for result, each in zip(recorded, words, strict=True):
        request = _naming_run(
            source, result, _request, each, folder, moved, out, threads or result.settings.get("threads")
        )
        reruns.append(_naming_run(source, result, rerun_of, result, request))
    return reruns


def _naming_run(source: Path, result: Result, function: Any, *arguments: Any) -> Any:
    """Return the result of `function`; its errors name the run."""
    try:
        return function(*arguments)
    except CompressError as error:
        raise CompressError(f"{source}: run {result.run}: {error}") from None


def words_of(command: str) -> dict[str, Any]:
    """Return the parameters of `compress run` in a recorded command, by the parser of `compress run` itself.

    Raises `CompressError` for any other command, and for one that the parser does not accept.
    """
    try:
        program, verb, *arguments = shlex.split(command)
        check_words([verb, *arguments])
    except ValueError:
        program, verb, arguments = "", "", []
    if (program, verb) != ("compress", "run"):
        raise CompressError(f"its command is `{command}`; expected one of `compress run`")

    @functools.wraps(runs.run)
    def words(**parameters: Any) -> dict[str, Any]:
        return parameters

    parser = typer.Typer(add_completion=False)
    parser.command(add_help_option=False)(words)
    try:
        return typer.main.get_command(parser).main(arguments, prog_name="compress run", standalone_mode=False)
    except _UsageError as error:
        raise CompressError(f"its command cannot be read: {usage_message(error, arguments)}: `{command}`") from None


def _request(words: Mapping[str, Any], folder: Path, moved: MovedData, out: Path, threads: int | None) -> Request:
    from ..reproduction import locate_files

    return request_of({**locate_files(words, folder, moved), "out": out, "threads": threads, "fsdp": False})


def request_of(words: Mapping[str, Any]) -> Request:
    """Return the request of `compress run` with these parameters. Raises `CompressError`."""
    return call(runs.RunOptions, words).request()


def _summary_lines(reproduction: Reproduction) -> Iterator[str]:
    """Yield lines on what is the same of machine, versions and code; if runs differ in this, for each group of runs."""
    groups: dict[tuple[str, ...], int] = {}
    for run in reproduction.runs:
        lines = tuple(_conditions(run))
        groups[lines] = groups.get(lines, 0) + 1
    for lines, count in groups.items():
        if len(groups) > 1:
            yield f"{count} of {len(reproduction.runs)} runs:"
        yield from lines
    stored = sum(run.stages_from_store for run in reproduction.runs)
    if stored:
        total = sum(run.stages for run in reproduction.runs)
        yield f"Stages: {stored} of {total} were in {reproduction.out}/.store already and were not made again."
    yield "Times are not measured again."


def _conditions(run: ReproducedRun) -> Iterator[str]:
    from ..reproduction import DECIDED_BY_TIMES

    same = [each.name for each in run.conditions if each.same and each.now is not None]
    timed = [each.recorded for each in run.conditions if each.name == DECIDED_BY_TIMES]
    other = [
        f"{each.name} ({_format_condition(each)})"
        for each in run.conditions
        if not each.same and each.name != DECIDED_BY_TIMES
    ]
    yield f"As recorded: {', '.join(same) or 'nothing'}."
    if other:
        yield f"Not as recorded: {', '.join(other)}."
    for stages in timed:
        yield f"{DECIDED_BY_TIMES.capitalize()}: {stages}; of the models that they make nothing must be the same."
    if run.exact:
        yield "Figures must be the same." if not timed else "Figures of other models must be the same."
    else:
        yield "Scores must be the same but for chance: the 95% interval of their difference holds 0. Sizes may differ by 1%."


def _format_condition(condition: Condition) -> str:
    recorded = condition.recorded or "not recorded"
    return recorded if condition.now == condition.recorded else f"{recorded}; now {condition.now or 'none'}"


def _table(reproduction: Reproduction) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Model", "Figure", "Recorded", "Now", "Other answers", "Verdict"):
        shown.add_column(name, justify="left" if name in ("Model", "Figure", "Verdict") else "right", overflow="fold")
    for run in reproduction.runs:
        shown.add_section()
        shown.add_row(Text(f"{run.recipe} on {run.task}, seed {run.seed}"), style="bold underline")
        for figure in run.figures:
            cells = (figure.model, _name(figure), *_values(figure), _answers(figure), _verdict(figure))
            shown.add_row(*map(Text, cells), style="bold red" if figure.verdict == "differs" else "")
    return shown


def _name(figure: Figure) -> str:
    return figure.name.replace("_", " ") + ("" if figure.split is None else f", {figure.split}")


def _values(figure: Figure) -> tuple[str, str]:
    """Format scores with as many digits as needed to tell them apart."""
    if figure.split is None:
        return f"{figure.recorded:,.0f}", "–" if figure.now is None else f"{figure.now:,.0f}"
    if figure.now is None:
        return f"{figure.recorded:.2f}", "–"
    pairs = ((f"{figure.recorded:.{digits}f}", f"{figure.now:.{digits}f}") for digits in (2, 4, 6, 9, 12, 15))
    return next(
        (pair for pair in pairs if figure.recorded == figure.now or pair[0] != pair[1]),
        (repr(figure.recorded), repr(figure.now)),
    )


def _answers(figure: Figure) -> str:
    return "" if figure.changed is None else f"{figure.changed:,} of {figure.examples:,}"


def _verdict(figure: Figure) -> str:
    interval = figure.interval
    reason = figure.why if interval is None else f"{interval.points:+.2f}, {interval.low:+.2f} to {interval.high:+.2f}"
    return figure.verdict + (f" ({reason})" if reason else "")
