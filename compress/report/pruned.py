"""What pruning left of each layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..results import Result
from . import numbers
from .runs import Variant
from .tables import NOTHING, Column, Line, Table, text_cells


def pruned_tables(variant: Variant) -> Iterator[Table]:
    """Two tables, where a stage of the recipe prunes: its scores on the tuning split, and heads and neurons by layer."""
    found = [(run, stage.info) for run in variant.runs for stage in run.stages if stage.kind.startswith("prune ")]
    if not found:
        return
    scores = (
        Column("Seed"),
        Column("Layers' FLOPs left"),
        Column("Whole", "points"),
        Column("Pruned", "points"),
        Column("Repaired", "points"),
    )
    yield Table("Pruning on the tuning split, without training", scores, tuple(_scores(*pair) for pair in found))
    columns = (
        Column("Seed"),
        Column("Layer"),
        Column("Heads kept"),
        Column("Which, from 0", numeric=False),
        Column("Neurons kept"),
    )
    yield Table("What pruning left of each layer", columns, tuple(line for pair in found for line in _layers(*pair)))


def _scores(run: Result, info: dict[str, Any]) -> Line:
    points = (info[f"{name}_tuning_score"] for name in ("whole", "pruned", "repaired"))
    told = (NOTHING if each is None else numbers.points(each) for each in points)
    return Line(text_cells(str(run.seed), f"{info['flops']:.1%}", *told))


def _layers(run: Result, info: dict[str, Any]) -> Iterator[Line]:
    for number, (heads, neurons) in enumerate(zip(info["heads"], info["neurons"], strict=True), 1):
        which = ", ".join(map(str, heads))
        yield Line(text_cells(str(run.seed), str(number), str(len(heads)), which, f"{neurons:,}"))
