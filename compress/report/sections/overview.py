"""The results of each recipe over all tasks of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...results.fidelity import Delta
from ...stats.significance import recorded_over_tasks
from ..grouping.groups import Row, Task, Variant, title
from ..grouping.labels import differences_within, name_of
from ..grouping.multiple_comparisons import Corrected, as_family
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table
from ..text.words import join_words
from .costs import Cost, compression, format_cost, unit_of
from .differences import difference_cell
from .sentences import teacher_word

_LONGER = 10  # epochs, or times as many steps
_ALL_RIGHT = 100 - 1e-6  # points, less rounding
READING = (
    "Over tasks, a mean counts each task alike. Its interval takes the tasks' examples as independent: the distances to the ends of the "
    "tasks' intervals are added in squares. The differences of all models are one family, corrected by Holm.",
)


@dataclass(frozen=True)
class Overall:
    """One model of one recipe, with a row for each task."""

    recipe: str
    rows: tuple[Row, ...]
    baselines: tuple[Row, ...]
    counted: tuple[bool, ...]  # of each row, whether it is part of the means
    corrected: Corrected | None = None  # together with the differences of all models

    @property
    def label(self) -> str:
        return ", ".join(part for part in (self.recipe, self.model) if part)

    @property
    def model(self) -> str:
        return title(self.rows[0].model)

    @property
    def headline(self) -> float:
        return self._mean(self.rows)

    @property
    def megabytes(self) -> str:
        """File size; from the smallest to the largest, if it differs by task or seed."""
        return numbers.extremes(numbers.megabytes, [model.file_bytes for row in self.rows for model in row.models])

    @property
    def seeds(self) -> str:
        """The number of seeds; from the fewest to the most, if it differs by task."""
        return numbers.extremes(str, [len(row.models) for row in self.rows])

    @property
    def is_baseline(self) -> bool:
        """Whether it is the baseline of its recipe, or of all."""
        return all(row.delta is None for row in self.rows)

    @property
    def share(self) -> float | None:
        """Share of the baseline's mean; None for the baseline, or if its mean is not above 0."""
        whole = self._mean(self.baselines)
        return None if self.is_baseline or whole <= 0 else self.headline / whole

    @property
    def delta(self) -> Delta | None:
        deltas = [row.delta for row in self.rows if row.delta is not None]
        if len(deltas) < len(self.rows):
            return None
        deltas = [delta for delta, counts in zip(deltas, self.counted, strict=True) if counts]
        return recorded_over_tasks(deltas)

    def _mean(self, rows: Sequence[Row]) -> float:
        points = [row.headline for row, counts in zip(rows, self.counted, strict=True) if counts]
        return sum(points) / len(points)


def over_tasks(tasks: Sequence[Task]) -> list[Overall]:
    """Return the models that every task has, in the order of the first task; `left_out_sentences` names recipes that a task lacks. Tasks on
    which no teacher beats a constant answer do not count in the means, as long as others do."""
    guessed = [task.is_guessed for task in tasks]
    counted = tuple(not each or all(guessed) for each in guessed)
    tables = _by_identity(tasks)
    shared = [identity for identity in tables[0] if all(identity in table for table in tables)]
    models = [
        Overall(
            recipe=_label(identity, shared),
            rows=tuple(table[identity] for table in tables),
            baselines=tuple(task.baseline_of(table[identity]) for task, table in zip(tasks, tables, strict=True)),
            counted=counted,
        )
        for identity in shared
    ]
    return as_family(models)


def guessed_sentences(tasks: Sequence[Task], *, counts: bool) -> list[str]:
    """Return a sentence for each task on which no teacher beats a constant answer. `counts`: whether they count in means beside others."""
    all_guessed = all(task.is_guessed for task in tasks)
    guessed = [(task, task.guess) for task in tasks if task.is_guessed and task.guess is not None]
    return [_guess_sentence(task, guess, all_guessed, counts=counts) for task, guess in guessed]


def guess_sentences(tasks: Sequence[Task]) -> list[str]:
    """Return a sentence for each task on which no teacher beats a constant answer: it does not count in the means, if others do. And one on
    the tasks of which this is not known, if there are means."""
    lines = guessed_sentences(tasks, counts=False)
    unknown = [task.first.task for task in tasks if task.guess is None and task.first.task.kind == "classification"]
    if unknown and len(tasks) > 1:
        titles = join_words([task.marked_title for task in unknown])
        lines.append(
            f"Means over tasks count {titles}: without predictions it is not known if a teacher beats the same answer for every text there"
        )
    return lines


def _guess_sentence(task: Task, guess: float, all_guessed: bool, *, counts: bool = False) -> str:
    """`counts`: whether the task counts in means all the same."""
    title, score = task.first.task.marked_title, numbers.points(task.baseline.headline)
    reason = f"no more than the same answer for every text, {numbers.points(guess)}"
    if all_guessed:
        if guess > _ALL_RIGHT:
            return f"{title}: {task.teacher} has {score}, {reason}: no score there tells models apart"
        trained = [
            stage.info for result in task.results for stage in result.stages if stage.kind.startswith("finetune ")
        ]
        remedy = (
            f"train it longer, e.g. --set finetune.{_longer(trained)}"
            if trained
            else "check that columns and labels are the right ones; --refit fine-tunes it again"
        )
        return f"{title}: {task.teacher} has {score}, {reason}, so there is nothing to compress; {remedy}"
    counted = "counts in means over tasks all the same" if counts else "does not count in means over tasks"
    return f"{title} {counted}: {task.teacher} has {score} there, {reason}"


def _longer(trained: Sequence[Mapping[str, Any]]) -> str:
    """Return a setting with which the trainings that left these records would have been longer."""
    specs = [info.get("spec") or {} for info in trained]
    if any(info.get("steps", 0) == spec.get("max_steps") for info, spec in zip(trained, specs, strict=True)):
        return f"max_steps={_LONGER * max(spec.get('max_steps') or 1 for spec in specs)}"
    return f"epochs={max(_LONGER, *(round(2 * float(spec.get('epochs') or 1)) for spec in specs), 0)}"


def left_out_sentences(tasks: Sequence[Task]) -> list[str]:
    """Return a sentence on the recipes that have no means over tasks, since they were not run alike on all; empty if there is none."""
    tables = [
        dict.fromkeys(identity._replace(model="") for identity in table if identity.recipe)
        for table in _by_identity(tasks)
    ]
    known = list(dict.fromkeys(run for table in tables for run in table))
    out = []
    for run in known:
        have = [task.first.task.marked_title for task, table in zip(tasks, tables, strict=True) if run in table]
        lack = [task.first.task.marked_title for task, table in zip(tasks, tables, strict=True) if run not in table]
        if lack:
            where = f"on {have[0]} alone" if len(have) == 1 else f"not on {join_words(lack)}"
            out.append(f"{_label(run, known)} ({where})")
    return [f"Means over tasks leave out {join_words(out)}"] if out else []


def overview_table(tasks: Sequence[Task]) -> Table | None:
    """Return a line for each model that every task has; None for one task, or if tasks share no model but the baseline."""
    models = over_tasks(tasks) if len(tasks) > 1 else []
    if all(overall.is_baseline for overall in models):
        return None
    costs = [_cost_of(overall, tasks) for overall in models]
    unit = unit_of(cost for cost in costs if cost)
    seeds_differ = len({overall.seeds for overall in models}) > 1 or " to " in models[0].seeds
    columns = (
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        *([Column("Seeds")] if seeds_differ else []),
        *(Column(task.first.task.marked_title) for task in tasks),
        Column("Mean"),
        Column(f"Of {teacher_word(tasks)}'s mean"),
        Column(f"Against {teacher_word(tasks)}", "points, 95% interval"),
        Column("File", "MB"),
        Column("Took", unit),
    )
    lines = tuple(
        _recipe_line(overall, took, unit, seeds_differ=seeds_differ)
        for overall, took in zip(models, costs, strict=True)
    )
    return Table("Over tasks", columns, lines, headings=2)


def _cost_of(overall: Overall, tasks: Sequence[Task]) -> Cost | None:
    """Return the cost over all tasks; None for the baseline, and if a run has no recorded stages."""
    if overall.is_baseline or not all(row.recipe for row in overall.rows):
        return None
    return compression([task.variant_of(row) for task, row in zip(tasks, overall.rows, strict=True)])


def _recipe_line(overall: Overall, took: Cost | None, unit: str, *, seeds_differ: bool) -> Line:
    share = overall.share
    cells = (
        Cell(overall.recipe or "baseline"),
        Cell(overall.model),
        *([Cell(overall.seeds)] if seeds_differ else []),
        *(Cell(numbers.points(row.headline)) for row in overall.rows),
        Cell(numbers.points(overall.headline)),
        Cell(NOTHING if share is None else numbers.share(share)),
        difference_cell(overall.delta, overall.corrected),
        Cell(overall.megabytes),
        Cell(NOTHING if took is None else format_cost(took, unit)),
    )
    return Line(cells, "baseline" if overall.is_baseline else "model")


class Identity(NamedTuple):
    """What makes rows of several tasks the same. `label`: distinguishes runs of one recipe, teachers and student, if there are several. A
    baseline has only `model` and `teachers`."""

    model: str
    recipe: str = ""
    teachers: str = ""
    student: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.recipe


def _by_identity(tasks: Sequence[Task]) -> list[dict[Identity, Row]]:
    """Return each task's models on ONNX Runtime, by identity. Of baselines with the same identity, the one with the most seeds."""
    labels = _labels_over_tasks(tasks)
    tables: list[dict[Identity, Row]] = []
    for task in tasks:
        rows: dict[Identity, Row] = {}
        for row in sorted(task.rows, key=lambda row: -len(row.models)):
            variant = task.variant_of(row)
            if task.is_baseline(row):
                rows.setdefault(Identity(title(row.model), teachers=variant.first.teacher), row)
            elif not row.eager:
                rows[Identity(row.name, *_what_was_run(variant), labels[id(variant)])] = row
        order = {id(row): place for place, row in enumerate(task.rows)}
        tables.append(dict(sorted(rows.items(), key=lambda item: order[id(item[1])])))
    return tables


def _labels_over_tasks(tasks: Sequence[Task]) -> dict[int, str]:
    """Map the id of each variant to what tells it from others of its recipe, teachers and student; empty if no task has several of these.

    The settings that tell variants of one task apart are named for those of all tasks, so that the same run has the same label on each.
    What else tells them apart, such as the machine, is left to the task's own labels."""
    alike: dict[tuple[str, str, str], list[list[Variant]]] = {}
    for task in tasks:
        of_task: dict[tuple[str, str, str], list[Variant]] = {}
        for variant in task.variants:
            of_task.setdefault(_what_was_run(variant), []).append(variant)
        for what, variants in of_task.items():
            alike.setdefault(what, []).append(variants)
    labels: dict[int, str] = {}
    for (name, *_), groups in alike.items():
        several = any(len(variants) > 1 for variants in groups)
        differences = differences_within([[variant.first for variant in variants] for variants in groups])
        for variants, own in zip(groups, differences, strict=True):
            apart = len(set(own)) == len(own) and all(own)
            for variant, difference in zip(variants, own, strict=True):
                labels[id(variant)] = "" if not several else f"{name} ({difference})" if apart else variant.label
    return labels


def _what_was_run(variant: Variant) -> tuple[str, str, str]:
    first = variant.first
    return name_of(first), first.teachers, first.student or ""


def _label(identity: Identity, shared: Sequence[Identity]) -> str:
    """Return the recipe's name, with the teachers or the student if another model of that name has others."""
    namesakes = [other for other in shared if other.name == identity.name]
    several = len({other.teachers for other in namesakes}) > 1, len({other.student for other in namesakes}) > 1
    differing = [
        word for word, differs in zip((identity.teachers, identity.student), several, strict=True) if differs and word
    ]
    return f"{identity.name or 'baseline'} ({', '.join(differing)})" if differing else identity.name
