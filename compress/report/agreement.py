"""Where models decide otherwise than their teacher: on which classes, and on short texts or long ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..results import Result
from .predictions import find_predictions, load_answers, token_counts
from .runs import Row, Task
from .tables import Cell, Column, Line, Table

READING = (
    "Agreement is the share of examples on which a model decides as its teacher does, be that right or wrong, on the first reported split: "
    "of each class by the gold labels, and of each quarter by length in the teacher's tokens.",
)
_CLASSES = 6  # columns of classes; of more classes the one that models agree on least, each for itself


@dataclass(frozen=True)
class Group:
    """Examples that are alike: which, bool [example]."""

    name: str
    members: np.ndarray

    @property
    def column(self) -> Column:
        return Column(self.name, f"{int(self.members.sum()):,} examples")


def agreement_table(task: Task, folders: Sequence[Path]) -> Table | None:
    """A line for each model but the teacher, the mean over seeds. None where models do not choose among classes, or predictions are
    not at hand in `folders`, as `find_predictions` takes them."""
    first = task.first
    files = {run.run: find_predictions(run, folders) for run in task.results}
    if first.task.kind != "classification" or not all(files.values()):
        return None
    found = {run.run: _same(run, file) for run in task.results if (file := files[run.run])}
    (_, gold), lengths = next(iter(found.values())), token_counts(task.results, folders)
    classes = [Group(name, gold == number) for number, name in enumerate(first.task.labels)]
    classes = [group for group in classes if group.members.any()]
    shown = [Group("All", np.ones(len(gold), bool)), *(classes if len(classes) <= _CLASSES else ())]
    quarters = [] if lengths is None else list(_quarters(lengths))
    columns = (
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        *(group.column for group in shown),
        *((Column("Least", "of a class"),) if len(classes) > _CLASSES else ()),
        *(group.column for group in quarters),
    )
    lines = []
    for row in task.rows:
        if row.delta is None or row.eager:
            continue
        same = _mean_over_seeds(task, row, {name: each for name, (each, _) in found.items()})
        cells = [_cell(same, group) for group in shown]
        cells += [_least(same, classes)] if len(classes) > _CLASSES else []
        cells += [_cell(same, group) for group in quarters]
        lines.append(Line((Cell(row.recipe), Cell(row.name), *cells)))
    return (
        Table(f"{first.task.title}: agreement with {task.teacher}", columns, tuple(lines), headings=2)
        if lines
        else None
    )


def _same(run: Result, file: Path) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Model's name in the predictions -> where it decides as the run's teacher, bool [example]; and gold."""
    names = [model.predictions for model in run.models]
    outputs, gold = load_answers(file, run, names)
    decided = [output.argmax(axis=1) for output in outputs]
    return {name: each == decided[0] for name, each in zip(names, decided, strict=True)}, gold


def _mean_over_seeds(task: Task, row: Row, found: dict[str, dict[str, np.ndarray]]) -> np.ndarray:
    """Share of seeds that decide as their teacher, [example]."""
    return np.mean([found[run.run][model.predictions] for run, model in task.made_by(row)], axis=0)


def _quarters(lengths: np.ndarray) -> Iterator[Group]:
    """By number of tokens, as near to equal as ties allow."""
    ends = np.unique(np.quantile(lengths, [0.25, 0.5, 0.75, 1], method="inverted_cdf"))
    places = np.searchsorted(ends, lengths)
    for place, end in enumerate(ends):
        members = places == place
        start = lengths[members].min()
        yield Group(f"{start} tokens" if start == end else f"{start} to {end} tokens", members)


def _cell(same: np.ndarray, group: Group) -> Cell:
    return Cell(f"{100 * same[group.members].mean():.1f}%")


def _least(same: np.ndarray, classes: Sequence[Group]) -> Cell:
    group = min(classes, key=lambda group: float(same[group.members].mean()))
    return Cell(_cell(same, group).text, f"{group.name}, of {int(group.members.sum()):,}")
