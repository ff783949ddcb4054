"""Compare the rows of an ablation with the full recipe: scores, differences, their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CompressError
from ...results import Result, TaskInfo
from ...results.fidelity import Delta
from ...stats.significance import Paired, mean_over_tasks
from ..grouping.collect import check_together
from ..grouping.multiple_comparisons import Corrected, as_family
from ..grouping.predictions import find_predictions, load_answers
from ..grouping.recorded_scores import Scored, metric_of
from ..sections.details import codes
from ..sections.differences import NOT_DISTINGUISHABLE, chance_note
from .published import Published, published_of


@dataclass(frozen=True)
class Measure:
    """Scores of the last model of each run: points per seed, and the difference to the full recipe (None for itself)."""

    scores: tuple[float, ...]
    delta: Delta | None
    corrected: Corrected | None = None  # together with the differences of all rows on the same task, or of their means

    @property
    def mean(self) -> float:
        return sum(self.scores) / len(self.scores)

    @property
    def is_more_than_chance(self) -> bool:
        return self.delta is not None and not chance_note(self.delta, self.corrected)


@dataclass(frozen=True)
class Entry:
    """One row: task -> measure, and their mean over all tasks."""

    label: str
    tasks: dict[str, Measure]
    mean: Measure
    runs: tuple[Result, ...]


@dataclass(frozen=True)
class Ablation:
    """A recipe's rows on the same tasks and seeds; the first is the full recipe. `folders`: where predictions are."""

    title: str
    entries: tuple[Entry, ...]
    command: str
    folders: tuple[Path, ...] = ()

    @property
    def full(self) -> Entry:
        return self.entries[0]

    @property
    def first(self) -> Result:
        return self.full.runs[0]

    @property
    def results(self) -> list[Result]:
        return [run for entry in self.entries for run in entry.runs]

    @property
    def tasks(self) -> dict[str, TaskInfo]:
        return {run.task.name: run.task for run in self.full.runs}

    @property
    def students(self) -> bool:
        """Whether a row has another student than the full recipe."""
        return any(self._student(entry) != self._student(self.full) for entry in self.entries)

    @property
    def parts(self) -> bool:
        """Whether a row has the same student, made in another way."""
        return any(self._student(entry) == self._student(self.full) for entry in self.entries[1:])

    def _student(self, entry: Entry) -> str | None:
        return entry.runs[0].student

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.full.runs})

    @property
    def teacher(self) -> tuple[dict[str, tuple[float, ...]], tuple[float, ...]]:
        """Scores of the fp32 teachers that the full recipe started from: task -> points per seed; their mean over tasks per seed."""
        scores: dict[str, tuple[float, ...]] = {}
        for run in self.full.runs:
            scores[run.task.name] = (*scores.get(run.task.name, ()), run.models[0].headline)
        return scores, tuple(float(np.mean(points)) for points in zip(*scores.values(), strict=True))

    @property
    def published(self) -> Published | None:
        """The paper's own ablation, if one is known that has a row of ours."""
        published = published_of(self.first.recipe.get("paper"))
        return published if published and any(entry.label in published.rows for entry in self.entries) else None

    def difference(self, entry: Entry) -> float | None:
        """Return the published difference to the full recipe, in points. Maps are published relative to the uniform one."""
        if entry.label.startswith("map ") and any(other.label == "map uniform" for other in self.entries):
            return None
        return self.published.difference(entry.label) if self.published else None

    def direction(self, entry: Entry) -> str | None:
        """Return `agrees`, `disagrees` or `not distinguishable`; None if nothing is published."""
        difference, delta = self.difference(entry), entry.mean.delta
        if difference is None or delta is None:
            return None
        if not entry.mean.is_more_than_chance:
            return NOT_DISTINGUISHABLE
        return "agrees" if (difference < 0) == (delta.points < 0) else "disagrees"


def ablation_of(rows: Mapping[str, Sequence[Result]], *, title: str, command: str, folders: Sequence[Path]) -> Ablation:
    """Compute scores and differences of `rows`: label -> runs, the full recipe first.

    `folders`: where each run's predictions are, as `find_predictions` takes them. Differences are on the same examples and seeds, with a
    paired bootstrap interval over both.

    Raises `CompressError` if rows do not have the same tasks and seeds, or if predictions are missing or another run's.
    """
    check_together(run for runs in rows.values() for run in runs)
    runs = {label: _by_task(results) for label, results in rows.items()}
    label, full = next(iter(runs.items()))
    for other, tasks in runs.items():
        if {task: set(seeds) for task, seeds in tasks.items()} != {task: set(seeds) for task, seeds in full.items()}:
            raise CompressError(
                f"rows `{label}` and `{other}` were not run on the same tasks and seeds; run both again"
            )
    entries = [_entry(name, full, tasks, folders) for name, tasks in runs.items()]
    return Ablation(title, tuple(_as_families(entries)), command, tuple(folders))


def _as_families(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with the differences on each task corrected together, and those of the means."""
    on_tasks = {task: as_family([entry.tasks[task] for entry in entries]) for task in entries[0].tasks}
    means = as_family([entry.mean for entry in entries])
    return [
        replace(entry, tasks={task: measures[place] for task, measures in on_tasks.items()}, mean=mean)
        for place, (entry, mean) in enumerate(zip(entries, means, strict=True))
    ]


def _by_task(runs: Sequence[Result]) -> dict[str, dict[int, Result]]:
    tasks: dict[str, dict[int, Result]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        tasks.setdefault(run.task.name, {})[run.seed] = run
    return tasks


def _entry(label: str, full: dict[str, Any], mine: dict[str, dict[int, Result]], folders: Sequence[Path]) -> Entry:
    scores = {task: tuple(run.final.headline for run in seeds.values()) for task, seeds in mine.items()}
    mean = tuple(float(np.mean(points)) for points in zip(*scores.values(), strict=True))
    runs = tuple(run for seeds in mine.values() for run in seeds.values())
    if mine is full:
        return Entry(label, {task: Measure(points, None) for task, points in scores.items()}, Measure(mean, None), runs)
    paired = [_pair_runs(list(full[task].values()), list(seeds.values()), folders) for task, seeds in mine.items()]
    measures = {task: Measure(scores[task], mean_over_tasks([pair])) for task, pair in zip(scores, paired, strict=True)}
    delta = mean_over_tasks(paired) if len(paired) > 1 else next(iter(measures.values())).delta
    return Entry(label, measures, Measure(mean, delta), runs)


def _pair_runs(full: Sequence[Result], other: Sequence[Result], folders: Sequence[Path]) -> Paired:
    """Pair the runs of the same seed."""
    scored = [_answers(run, folders) for run in (*full, *other)]
    gold = scored[0].gold
    if any(not np.array_equal(each.gold, gold) for each in scored):
        raise CompressError(f"runs {full[0].run} and {other[0].run} hold different gold labels; run both again")
    outputs = [each.outputs for each in scored]
    return Paired(metric_of(scored), tuple(zip(outputs[: len(full)], outputs[len(full) :], strict=True)), gold)


def _answers(run: Result, folders: Sequence[Path]) -> Scored:
    """Return answers of the last model on the reported split."""
    file = _file(run, folders)
    (outputs,), gold = load_answers(file, run, [run.final.predictions])
    return Scored(run, run.final, outputs, gold, file)


def _file(run: Result, folders: Sequence[Path]) -> Path:
    file = find_predictions(run, folders)
    if file is None:
        raise CompressError(f"run {run.run}: its predictions are not at hand; run the ablation again")
    return file


def ablation_document(ablation: Ablation) -> dict[str, Any]:
    """The ablation as plain data; scores and differences in points."""
    published = ablation.published
    return {
        "title": ablation.title,
        "paper": ablation.first.recipe.get("paper"),
        "teacher": ablation.first.teachers,
        "student": ablation.first.student,
        "command": ablation.command,
        "code": [code.model_dump(mode="json") for code in codes(ablation.results)],
        "seeds": ablation.seeds,
        "tasks": {name: list(info.metrics) for name, info in ablation.tasks.items()},
        "published": {"source": published.source, "what": published.what, "full": published.full}
        if published
        else None,
        "rows": [_row_record(ablation, entry) for entry in ablation.entries],
    }


def _row_record(ablation: Ablation, entry: Entry) -> dict[str, Any]:
    return {
        "label": entry.label,
        "student": entry.runs[0].student,
        "runs": [run.run for run in entry.runs],
        "model": entry.runs[0].final.predictions,
        "tasks": {task: _measure(measure) for task, measure in entry.tasks.items()},
        "mean": _measure(entry.mean),
        "published_difference": ablation.difference(entry),
        "direction": ablation.direction(entry),
    }


def _measure(measure: Measure) -> dict[str, Any]:
    delta = measure.delta
    difference = None if delta is None else {"points": delta.points, "low": delta.low, "high": delta.high}
    return {"scores": list(measure.scores), "mean": measure.mean, "difference": difference}
