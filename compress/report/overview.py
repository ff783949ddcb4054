"""What each recipe comes to over all tasks of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from ..recorded_fidelity import Delta
from . import numbers
from .runs import Row, Task, Variant, name_of
from .sentences import baseline_of, teacher_word
from .tables import NOTHING, Cell, Column, Line, Table, against

READING = (
    "Over tasks, a mean counts each task alike. Its interval takes the tasks' examples as independent: the distances to the ends of the "
    "tasks' intervals are added in squares.",
)


@dataclass(frozen=True)
class Overall:
    """One model of one recipe, with a row of each task."""

    recipe: str
    rows: tuple[Row, ...]
    baselines: tuple[Row, ...]

    @property
    def label(self) -> str:
        return ", ".join(part for part in (self.recipe, self.rows[0].name) if part)

    @property
    def headline(self) -> float:
        return _mean([row.headline for row in self.rows])

    @property
    def is_baseline(self) -> bool:
        """Of its recipe, or of all."""
        return all(row.delta is None for row in self.rows)

    @property
    def share(self) -> float | None:
        """Of the baseline's mean; None for the baseline, or where its mean is not above 0."""
        whole = _mean([row.headline for row in self.baselines])
        return None if self.is_baseline or whole <= 0 else self.headline / whole

    @property
    def delta(self) -> Delta | None:
        found = [row.delta for row in self.rows if row.delta is not None]
        if len(found) < len(self.rows):
            return None
        points, count = _mean([delta.points for delta in found]), len(found)
        below = hypot(*(delta.points - delta.low for delta in found)) / count
        above = hypot(*(delta.high - delta.points for delta in found)) / count
        return Delta(points=points, low=points - below, high=points + above, mcnemar_p=None)


def over_tasks(tasks: Sequence[Task]) -> list[Overall]:
    """The models that every task has, in the order of the first task."""
    tables = [_by_identity(task) for task in tasks]
    shared = [identity for identity in tables[0] if all(identity in table for table in tables)]
    names = Counter((_name(identity), identity[-1]) for identity in shared)
    return [
        Overall(
            recipe=_called(identity, alone=names[_name(identity), identity[-1]] == 1),
            rows=tuple(table[identity] for table in tables),
            baselines=tuple(baseline_of(task, table[identity]) for task, table in zip(tasks, tables, strict=True)),
        )
        for identity in shared
    ]


def overview_table(tasks: Sequence[Task]) -> Table | None:
    """A line for each model that every task has; None of one task, or where tasks share no model but the baseline."""
    found = over_tasks(tasks) if len(tasks) > 1 else []
    if all(overall.is_baseline for overall in found):
        return None
    columns = (
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        *(Column(task.first.task.title) for task in tasks),
        Column("Mean"),
        Column(f"Of {teacher_word(tasks)}"),
        Column(f"Against {teacher_word(tasks)}", "points, 95% interval"),
        Column("File", "MB"),
    )
    return Table("Over tasks", columns, tuple(map(_line, found)), headings=2)


def _line(overall: Overall) -> Line:
    share = overall.share
    sizes = dict.fromkeys(numbers.megabytes(row.model.file_bytes) for row in overall.rows)
    cells = (
        Cell(overall.recipe or "baseline"),
        Cell(overall.rows[0].name),
        *(Cell(numbers.points(row.headline)) for row in overall.rows),
        Cell(numbers.points(overall.headline)),
        Cell(NOTHING if share is None else f"{100 * share:.1f}%"),
        against(overall.delta),
        Cell(" to ".join([next(iter(sizes)), *list(sizes)[1:][-1:]])),
    )
    return Line(cells, "baseline" if overall.is_baseline else "model")


Identity = tuple[str, ...]  # the recipe's name, its teachers, its student, what tells runs of these apart, the model


def _by_identity(task: Task) -> dict[Identity, Row]:
    """Each model on ONNX Runtime. A baseline that recipes share has no recipe, teachers or student."""
    plain = Counter(map(_plain, task.variants))
    known = {
        variant.label: (*_plain(variant), "" if plain[_plain(variant)] == 1 else variant.label)
        for variant in task.variants
    }
    return {(*(known[row.recipe] if row.recipe else ("",) * 4), row.name): row for row in task.rows if not row.eager}


def _plain(variant: Variant) -> tuple[str, str, str]:
    first = variant.first
    return name_of(first), first.teachers, first.student or ""


def _name(identity: Identity) -> str:
    return identity[3] or identity[0]


def _called(identity: Identity, *, alone: bool) -> str:
    _, teachers, student, _, _ = identity
    return (
        _name(identity) if alone else f"{_name(identity)} ({', '.join(part for part in (teachers, student) if part)})"
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
