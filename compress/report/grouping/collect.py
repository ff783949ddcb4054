"""Run directories, globs and result files -> results that fit in one report."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...errors import CompressError
from ...results import ABLATION, MODELS, RESULT, SEVERAL, Result, read_results
from ...results.copies import run_of, without_copies
from .labels import is_timed, machine_of

# Fields in which two results of the same artefacts differ if they were requested in different ways.
_INCIDENTAL: Any = {
    "created": True,
    "run": True,
    "command": True,
    "stages": {"__all__": {"cached"}},
    "settings": {"measurements"},
}


def collect(paths: Sequence[Path]) -> list[Result]:
    """Return the results at `paths`: run directories, folders of them, globs, `result.json` and `results.json` files.

    A result that is found twice counts once, even under two equivalent commands, and so does a run with and without times. Of a report
    beside runs, the results of other runs are taken. Raises `CompressError` naming the file that cannot be read, the path that has no
    result, or the two results that do not fit in one report.
    """
    results: dict[str, Result] = {}
    files: dict[tuple[str, ...], tuple[str, Path]] = {}
    for path in paths:
        runs, copies = _files(Path(path))
        own = without_copies([(file, result) for file in runs for result in read_results(file)])
        known = {run_of(result) for _, result in own}
        more = [(file, result) for file in copies for result in read_results(file) if run_of(result) not in known]
        for file, result in own + more:
            text = result.model_dump_json(exclude=_INCIDENTAL)
            results.setdefault(text, result)
            timed = str(result.settings.get("bench"))  # the same run on one thread and on two are two rows
            before, other = files.setdefault((result.run, machine_of(result), timed), (text, file))
            if before != text:
                raise CompressError(
                    f"{other} and {file}: hold different results of the run {result.run}; leave one out"
                )
    kept = _without_untimed(list(results.values()))
    check_together(kept)
    return kept


def _without_untimed(results: Sequence[Result]) -> list[Result]:
    """Return `results` without those of runs that are also there with times, and with the same scores."""
    timed = {_scored(result) for result in results if is_timed(result)}
    return [result for result in results if is_timed(result) or _scored(result) not in timed]


def _scored(result: Result) -> tuple[str, str, str]:
    """Return what tells a run's result from that of the same run made anew, whether it was timed or not."""
    return result.run, machine_of(result), str([(model.predictions, model.scores) for model in result.models])


def check_together(results: Iterable[Result]) -> None:
    """Raise `CompressError` if `results` do not fit in one report: two versions of the data of one task, or two ways of scoring it."""
    first: dict[str, Result] = {}
    for result in results:
        task = result.task
        other = first.setdefault(task.name, result)
        theirs = other.task
        if task.data.fingerprint != theirs.data.fingerprint:
            raise CompressError(
                f"task {task.name}: runs {other.run} and {result.run} read different data "
                f"({_describe_data(other)} against {_describe_data(result)}); report them apart, or run one of them again"
            )
        if (task.metrics, task.splits) != (theirs.metrics, theirs.splits):
            raise CompressError(
                f"task {task.name}: runs {other.run} and {result.run} are scored differently "
                f"({', '.join(theirs.metrics)} against {', '.join(task.metrics)}); report them apart"
            )


def _describe_data(result: Result) -> str:
    rows = ", ".join(f"{split} {count:,}" for split, count in result.task.data.rows.items())
    return f"{rows}; fingerprint {result.task.data.fingerprint[:8]}"


def _files(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files with results at `path`, and those of a report beside runs, which count for what the runs lack."""
    if path.is_file():
        return [path], []
    if path.is_dir():
        here = [path / name for name in (RESULT, SEVERAL) if (path / name).is_file()]
        below = [] if (path / MODELS).exists() else sorted(path.glob(f"*/{RESULT}"))
        if not here and not below:
            if (path / ABLATION).is_file():
                raise CompressError(
                    f"{path}: is of `compress ablate`; to make it again, repeat the command in its ablation.md"
                )
            raise CompressError(
                f"{path}: holds no result.json, neither itself nor in a folder below; name a finished run"
            )
        return (below, here) if below else (here, [])
    matches = sorted(glob.glob(str(path)))  # noqa: PTH207 - the pattern may be absolute
    if not matches or matches == [str(path)]:  # a link that leads nowhere matches itself
        raise CompressError(
            f"{path}: no such file or directory; expected a run directory, its result.json, or a pattern"
        )
    at_matches = [_matching_files(Path(match)) for match in matches]
    return [file for files, _ in at_matches for file in files], [file for _, copies in at_matches for file in copies]


def _matching_files(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files at a match, or none: a pattern such as `runs/*` also matches folders that are not runs."""
    try:
        return _files(path)
    except CompressError:
        return [], []
