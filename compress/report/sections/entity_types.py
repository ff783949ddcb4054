"""Scores of each type of entity."""

from __future__ import annotations

from collections.abc import Iterator

from ...metrics.tags import entity_metric
from ..grouping.groups import Variant, title
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table


def type_tables(variant: Variant) -> Iterator[Table]:
    """Yield one table, if the task's labels are of entities: F1 of every model by type, the mean over seeds, with precision and recall,
    strict if the task's own F1 is."""
    first = variant.first
    if not first.models[0].types:
        return
    models = [title(model) for model in first.models]
    f1 = "strict F1" if entity_metric(first.task.metrics) == "entity_f1_strict" else "F1"
    columns = (
        Column("Type", numeric=False),
        Column("Entities", f"in {first.task.splits[0]}"),
        *(Column(name, f"{f1} (precision, recall)") for name in models),
    )
    lines = [
        Line((Cell(name), Cell(f"{gold.entities:,}"), *(_cell(variant, place, name) for place in range(len(models)))))
        for name, gold in first.models[0].types.items()
    ]
    yield Table("By type of entity", columns, tuple(lines))


def _cell(variant: Variant, place: int, name: str) -> Cell:
    scores = [run.models[place].types[name] for run in variant.runs if name in run.models[place].types]
    if not scores:
        return Cell(NOTHING)
    f1, precision, recall = (
        numbers.points(sum(getattr(each, part) for each in scores) / len(scores))
        for part in ("f1", "precision", "recall")
    )
    return Cell(f1, f"({precision}, {recall})")
