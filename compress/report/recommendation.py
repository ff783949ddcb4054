"""Which model of a report to ship under limits, the runner-up, and if no model meets them, which limits are missed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import CompressError
from ..files.paths import display_path
from ..model_choice import Choice, Limits, Measured, choose
from ..results import MODELS, ONE_TUNING_LABEL, ModelResult, Result
from .grouping.conditions import timed_threads
from .grouping.groups import Row, Shape, Task
from .grouping.machines import machines
from .grouping.predictions import own_file
from .grouping.steady_times import drift_sentence, steady_times
from .sections.overview import Overall, left_out_sentences, over_tasks
from .text import numbers
from .text.words import join_words

LENGTH = 128  # tokens of the text whose time is limited, or fewer if the task's limit is lower
READING = (
    "What to ship is chosen by the tuning split; by the reported one a model would be chosen for its luck there. Over tasks "
    "scores and times are means; over seeds scores are means, and the slowest and the largest file count.",
)


@dataclass(frozen=True)
class Recommendation:
    """`lines`: sentences; `commands`: a `compress ship` for each task, valid from here, empty if limits are missed; `script`: the same for
    a page, with folders as written by `display_path`; `models`: what these ship, each with its run; `missed`: whether limits are."""

    lines: tuple[str, ...]
    commands: tuple[str, ...]
    script: str
    models: tuple[tuple[Result, ModelResult], ...] = field(repr=False)
    missed: bool


def recommend(tasks: Sequence[Task], limits: Limits, folders: Sequence[Path] = ()) -> Recommendation:
    """Choose among the models that every task has and whose tuning score is known. CompressError: there is none besides teachers, or a
    limit of latency and no measured times."""
    contenders = _contenders(tasks)
    apart = [task.first.task.marked_title for task in tasks if _is_timed(task) and len(machines(_timed_runs(task))) > 1]
    if apart and limits.max_latency_ms is not None:
        raise CompressError(
            f"--max-latency-ms: expected times of one machine, found those of several on {join_words(apart)}; run the recipes on one"
        )
    models = [
        _measure_candidate(number, overall, score, tasks, limits) for number, (overall, score) in enumerate(contenders)
    ]
    if apart:
        models = [replace(model, latency_ms=None) for model in models]
    untimed = [contenders[model.number][0].label for model in models if model.latency_ms is None]
    if untimed:  # then times cannot be compared
        models = [replace(model, latency_ms=None) for model in models]
    choice = choose(models, limits)
    chosen = contenders[choice.model.number][0]
    lines = [
        f"{_format_limits(limits, tasks)}: {'no model meets this; the nearest is ' if choice.missed else ''}"
        f"{_describe_candidate(chosen, choice.model)}.",
        *_untimed_sentences(apart, untimed, len(models)),
        *(f"{line}." for line in left_out_sentences(tasks)),
        *(f"It misses {line}." for line in choice.missed),
        *_second_sentences(contenders, models, choice, limits),
        *_one_label_sentences(tasks),
    ]
    if not apart and not untimed:
        drift = drift_sentence([(task, _shape(task)) for task in tasks if _is_timed(task)])
        lines += [*([drift] if drift else []), *_doubt_sentences([overall for overall, _ in contenders], tasks)]
    picked = tuple(_best_seed(task, row) for task, row in zip(tasks, chosen.rows, strict=True))
    if choice.missed:
        return Recommendation(tuple(lines), (), "", picked, missed=True)
    places = [str(_folder_of(run, folders)) for run, _ in picked]
    here, recorded = (
        tuple(ship_command(run, model, place) for (run, model), place in zip(picked, named, strict=True))
        for named in (places, map(display_path, places))
    )
    return Recommendation(tuple(lines), here, "\n".join(recorded), picked, missed=False)


def _contenders(tasks: Sequence[Task]) -> list[tuple[Overall, float]]:
    """Return the models that every task has and whose tuning score is known, each with that score. CompressError: there is none."""
    candidates = over_tasks(tasks)
    if len(tasks) > 1 and all(overall.is_baseline for overall in candidates):
        titles = join_words([task.first.task.marked_title for task in tasks])
        raise CompressError(
            f"expected a recipe that was run in the same way on all of {titles}; found none; name the runs of one task"
        )
    contenders = [(overall, score) for overall in candidates if (score := _tuning_score(overall, tasks)) is not None]
    if not contenders:
        raise CompressError(
            "expected a model whose score on the tuning split is known, in all tasks; found none; run the recipes again"
        )
    return contenders


def _untimed_sentences(apart: Sequence[str], untimed: Sequence[str], models: int) -> list[str]:
    """Say why times do not count: those of the tasks `apart` are of several machines, or some of so many `models` were not timed."""
    if apart:
        return [f"Times do not count, since those of {join_words(apart)} are of several machines."]
    if 0 < len(untimed) < models:
        return [f"Times do not count, since {join_words(untimed)} {'was' if len(untimed) == 1 else 'were'} not timed."]
    return []


def _second_sentences(
    contenders: Sequence[tuple[Overall, float]], models: Sequence[Measured], choice: Choice, limits: Limits
) -> list[str]:
    """Name the runner-up among the models that meet the limits, if there is one."""
    rest = [model for model in models if model is not choice.model and limits.meets(model)]
    if rest:
        second = choose(rest, limits).model
        return [f"The runner-up is {_describe_candidate(contenders[second.number][0], second)}."]
    return [] if choice.missed else ["No other model meets this."]


def _one_label_sentences(tasks: Sequence[Task]) -> list[str]:
    """Return a sentence for each task by whose tuning split models cannot be ranked."""
    return [
        f"By score, models of {task.first.task.marked_title} cannot be ranked: {ONE_TUNING_LABEL}; name a file with other labels, too, "
        "with --tuning, and run again."
        for task in tasks
        if any(ONE_TUNING_LABEL in note for result in task.results for note in result.task.data.notes)
    ]


def _measure_candidate(number: int, overall: Overall, score: float, tasks: Sequence[Task], limits: Limits) -> Measured:
    size = max(model.file_bytes for row in overall.rows for model in row.models) / 1e6
    times = [_time(task, row) for task, row in zip(tasks, overall.rows, strict=True) if _is_timed(task)]
    known = [time for time in times if time is not None]
    latency = sum(known) / len(known) if known and len(known) == len(times) else None
    if limits.max_latency_ms is not None and latency is None:
        several = [
            row.label for task in tasks for row in task.rows if any(runtime.threads != 1 for runtime in row.runtimes)
        ]
        why = (
            f"{join_words(list(dict.fromkeys(several)))} ran on more than one thread"
            if several
            else f"found none of {overall.label}"
        )
        raise CompressError(
            f"--max-latency-ms: expected CPU times of one text of {LENGTH} tokens of all models; {why}; run the recipe on one thread "
            "without --no-bench"
        )
    return Measured(number, score, size, latency)


def _timed_runs(task: Task) -> list[Result]:
    return [run for run in task.results if timed_threads([run])]


def _doubt_sentences(candidates: Sequence[Overall], tasks: Sequence[Task]) -> list[str]:
    """Return a sentence on candidates that were timed on a busy machine."""
    busy = [
        overall.label
        for overall in candidates
        if any(_shape(task) in task.in_doubt(row) for task, row in zip(tasks, overall.rows, strict=True))
    ]
    if not busy:
        return []
    return [
        f"The machine was busy while {join_words(busy)} {'was' if len(busy) == 1 else 'were'} timed; "
        "`compress run … --rebench` does it again."
    ]


def _is_timed(task: Task) -> bool:
    """Whether any of the task's models was timed: a report may have tasks that were run without latency."""
    return any(_time(task, row) is not None for row in task.rows if not row.eager)


def _time(task: Task, row: Row) -> float | None:
    """Return the steady time of the slowest seed."""
    shape = _shape(task)
    return max(steady_times(task, row, shape), default=None) if shape is not None and task.cpu_time else None


def _shape(task: Task) -> Shape | None:
    """Return the shape of one text with the most timed tokens, up to LENGTH."""
    return max((shape for shape in task.shapes if shape[0] == 1 and shape[1] <= LENGTH), default=None)


def _tuning_score(overall: Overall, tasks: Sequence[Task]) -> float | None:
    """Return the mean over tasks of the means over seeds, in points; None if one is unknown."""
    means = []
    for task, row, counts in zip(tasks, overall.rows, overall.counted, strict=True):
        if not counts:
            continue
        scores = [tuning_score(run, model) for run, model in task.models_of(row)]
        known = [score for score in scores if score is not None]
        if len(known) < len(scores):
            return None
        means.append(sum(known) / len(known))
    return sum(means) / len(means)


def tuning_score(run: Result, model: ModelResult) -> float | None:
    """Return points of a model of `run` on the tuning split; for an fp32 model those that its int8 form was compared with, or else those of
    its training; None if neither is recorded."""
    if own := model.info.get("fidelity"):
        return own["int8_tuning_score"]
    for other in run.models:
        if other.name == model.name and (beside := other.info.get("fidelity")):
            return beside["fp32_tuning_score"]
    return _training_score(run, model.name)


def _training_score(run: Result, name: str) -> float | None:
    """Return the score of the last training before the export: a student that is distilled again, by a stage of another name, keeps its
    own."""
    trained = [stage for stage in run.stages if "tuning_score" in stage.info]
    own = [number for number, stage in enumerate(trained) if stage.kind.split()[-1] == name]
    if not own:
        return None
    kinds, last = [stage.kind for stage in run.stages], trained[own[-1]]
    if (export := f"export {name}-fp32") in kinds:
        before = run.stages[: kinds.index(export)]
        later = [stage for stage in trained[own[-1] :] if stage.kind.startswith("distill ") and stage in before]
        last = later[-1] if later else last
    return last.info["tuning_score"]


def _format_limits(limits: Limits, tasks: Sequence[Task]) -> str:
    timed = [task.first.task.marked_title for task in tasks if _is_timed(task)]
    lengths = {shape[1] for task in tasks if _is_timed(task) and (shape := _shape(task))}
    long = f"{lengths.pop()}" if len(lengths) == 1 else f"at most {LENGTH}"
    on = f" on {join_words(timed)}" if 0 < len(timed) < len(tasks) else ""
    parts = (
        (limits.max_latency_ms, "at most", f"ms for a text of {long} tokens{on}"),
        (limits.max_size_mb, "at most", "MB"),
        (limits.min_score, "at least", "points on the tuning split"),
    )
    return "With " + ", ".join(f"{most} {limit:g} {what}" for limit, most, what in parts if limit is not None)


def _describe_candidate(overall: Overall, model: Measured) -> str:
    """Format e.g. `int8, teacher int8 (tuning 91.50 points, reported 90.14, 6.35 ms, 23.2 MB)`."""
    facts = [f"tuning {numbers.points(model.score)} points", f"reported {numbers.points(overall.headline)}"]
    facts += [] if model.latency_ms is None else [f"{numbers.significant(model.latency_ms)} ms"]
    return f"{overall.label} ({', '.join([*facts, f'{numbers.significant(model.size_mb)} MB'])})"


def _best_seed(task: Task, row: Row) -> tuple[Result, ModelResult]:
    """Return the best seed on the tuning split; of equals the first."""
    return max(task.models_of(row), key=lambda pair: tuning_score(*pair) or 0.0)


def options_of(run: Result, model: ModelResult) -> tuple[str | None, tuple[str, ...]]:
    """Return --model and --precision of `compress ship`; without them it takes the last model with all its precisions."""
    return (None, ()) if model is run.final else (model.name, (model.precision,))


def _folder_of(run: Result, folders: Sequence[Path]) -> Path:
    """Return the run's folder among `folders`, if it is one of them or in one; else the default one under `runs`."""
    own = own_file(run, folders, MODELS)
    return own.parent if own else Path("runs") / run.run


def ship_command(run: Result, model: ModelResult, folder: str) -> str:
    """Return the `compress ship` of a model of the run in `folder`: the actual folder for running it now, or as written by `display_path`
    for a record."""
    name, precisions = options_of(run, model)
    which = [*(["--model", name] if name else []), *(word for each in precisions for word in ("--precision", each))]
    return shlex.join(["compress", "ship", folder, *which, "-o", f"{run.run}-bundle"])
