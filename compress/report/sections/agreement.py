"""Where models decide differently from their teacher: on which classes, and on short or long texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...results import Result
from ..grouping.groups import Task
from ..grouping.predictions import find_predictions, load_answers, token_counts
from ..text import numbers
from ..text.cells import Cell, Column, Line, Table, text_cells
from ..text.words import of_first_split, row_word

READING = (
    "Agreement is the share of examples on which a model decides as its teacher does, be that right or wrong, on the first reported split: "
    "of each class by the gold labels, and of each quarter by length in the teacher's tokens.",
)
_PARTING = (
    Column("Teacher says", numeric=False),
    Column("Its confidence"),
    Column("Model says", numeric=False),
    Column("Its confidence"),
    Column("Gold agrees with", numeric=False),
)
_CLASSES = 6  # columns of classes; with more classes, only the one with the least agreement, for each model


@dataclass(frozen=True)
class Group:
    """Examples with something in common. `members`: bool [example]."""

    name: str
    members: np.ndarray

    @property
    def column(self) -> Column:
        return Column(self.name, f"{int(self.members.sum()):,} examples")

    def share(self, same: np.ndarray) -> float:
        return float(same[self.members].mean())

    def cell(self, same: np.ndarray) -> Cell:
        return Cell(numbers.share(self.share(same)))


@dataclass(frozen=True)
class Least:
    """The group with a model's least agreement, out of `groups`."""

    groups: Sequence[Group]
    column = Column("Least", "of a class")

    def cell(self, same: np.ndarray) -> Cell:
        group = min(self.groups, key=lambda group: group.share(same))
        return Cell(group.cell(same).text, f"{group.name}, of {int(group.members.sum()):,}")


def agreement_table(task: Task, folders: Sequence[Path]) -> Table | None:
    """Return a line for each model but the teacher, the mean over seeds. None if models do not choose among classes, or if `folders`, as
    `find_predictions` takes them, lack predictions of a run. Raises `CompressError` naming a damaged file."""
    files = [find_predictions(run, folders) for run in task.results]
    if task.first.task.kind != "classification" or not all(files):
        return None
    agreements = {
        id(run): _agreement_with_teacher(run, file) for run, file in zip(task.results, files, strict=True) if file
    }
    groups = list(_groups(task, agreements[id(task.first)][1], token_counts(task.results, folders)))
    lines = []
    for row in task.rows:
        if row.delta is not None and not row.eager:
            same = np.mean([agreements[id(run)][0][model.predictions] for run, model in task.models_of(row)], axis=0)
            lines.append(Line((Cell(row.recipe), Cell(row.name), *(group.cell(same) for group in groups))))
    columns = (Column("Recipe", numeric=False), Column("Model", numeric=False), *(group.column for group in groups))
    caption = f"{task.first.task.marked_title}: agreement with {task.teacher}"
    return Table(caption, columns, tuple(lines), headings=2) if lines else None


def disagreement_tables(task: Task) -> list[Table]:
    """Return for each fp32 student the examples with the most confident disagreement between it and the teacher, for the first seed."""
    tables, info = [], task.first.task
    columns = (Column(row_word(info)), *_PARTING)
    for row in task.rows:
        disagreements = row.model.disagreements
        if disagreements and not row.eager:
            caption = (
                f"{row.label}: {row_word(info).lower()}s of {of_first_split(info)} on which it and {task.teacher} part, both most sure"
                f"{', of the first seed' if len(row.models) > 1 else ''}"
            )
            lines = (
                text_cells(
                    str(each.row),
                    each.teacher,
                    numbers.share(each.teacher_confidence),
                    each.model,
                    numbers.share(each.model_confidence),
                    each.gold,
                )
                for each in disagreements
            )
            tables.append(Table(caption, columns, tuple(map(Line, lines))))
    return tables


def _groups(task: Task, gold: np.ndarray, lengths: np.ndarray | None) -> Iterator[Group | Least]:
    yield Group("All", np.ones(len(gold), bool))
    named = (Group(name, gold == number) for number, name in enumerate(task.first.task.labels))
    classes = [group for group in named if group.members.any()]
    yield from classes if len(classes) <= _CLASSES else [Least(classes)]
    yield from [] if lengths is None else _quarters(lengths)


def _agreement_with_teacher(run: Result, file: Path) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return a model's name in the predictions -> where it decides as the run's teacher, bool [example]; and gold."""
    names = [model.predictions for model in run.models]
    outputs, gold = load_answers(file, run, names)
    decided = [output.argmax(axis=1) for output in outputs]
    return {name: each == decided[0] for name, each in zip(names, decided, strict=True)}, gold


def _quarters(lengths: np.ndarray) -> Iterator[Group]:
    """Yield quarters by number of tokens, as near to equal as ties allow."""
    ends = np.unique(np.quantile(lengths, [0.25, 0.5, 0.75, 1], method="inverted_cdf"))
    places = np.searchsorted(ends, lengths)
    for place, end in enumerate(ends):
        members = places == place
        start = lengths[members].min()
        yield Group(f"{start} tokens" if start == end else f"{start} to {end} tokens", members)
