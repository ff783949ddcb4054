"""The scores of several teachers, and of the student's target: the mean of their calibrated probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from ...results import Result
from ...results.teachers import EnsembleScore
from ..grouping.groups import Variant
from ..text import numbers
from ..text.cells import NOTHING, Column, Line, Table, text_cells
from .scores import TEACHERS_MEAN


def ensemble_tables(variant: Variant) -> Iterator[Table]:
    """Yield one table, if a run of the recipe has several teachers."""
    lines = [line for run in variant.runs if run.ensemble for line in _score_lines(run, run.ensemble)]
    if lines:
        split = variant.first.task.splits[0]
        columns = (
            Column("Teacher", numeric=False),
            Column("Seed"),
            Column("Temperature", "fitted on the tuning split"),
            Column("Tuning split", "points"),
            Column("Score", f"points on {split}"),
        )
        yield Table("Teachers", columns, tuple(lines))


def _score_lines(run: Result, ensemble: EnsembleScore) -> Iterator[Line]:
    for number, teacher in enumerate(ensemble.teachers):
        temperature = NOTHING if teacher.temperature is None else f"{teacher.temperature:.2f}"
        name = teacher.name if number else f"{teacher.name} (the baseline)"
        tuning, score = numbers.points(teacher.tuning_score), numbers.points(teacher.headline)
        yield Line(text_cells(name, str(run.seed), temperature, tuning, score))
    tuning, score = numbers.points(ensemble.tuning_score), numbers.points(ensemble.headline)
    yield Line(text_cells(TEACHERS_MEAN, str(run.seed), NOTHING, tuning, score))
