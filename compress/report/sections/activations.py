"""What replacing a model's activation with ReLU cost, and how much the fit recovered."""

from __future__ import annotations

from collections.abc import Iterator

from ...results import StageRecord
from ..grouping.groups import Variant
from ..text import numbers
from ..text.cells import NOTHING, Column, Line, Table, text_cells

_FIELDS = {"before", "replaced", "fitted", "same"}
_COLUMNS = (
    Column("Seed"),
    Column("Model", numeric=False),
    Column("Texts of the fit"),
    Column("Before", "points"),
    Column("ReLU alone", "points"),
    Column("Fitted", "points"),
    Column("Same decisions", "share"),
)


def activation_tables(variant: Variant) -> Iterator[Table]:
    """Yield one table, if a stage of the recipe replaced the activation."""
    stages = [(run.seed, record) for run in variant.runs for record in run.stages if record.info.keys() >= _FIELDS]
    if stages:
        yield Table(
            "ReLU in place of the activation, on the tuning split",
            _COLUMNS,
            tuple(_stage_line(*each) for each in stages),
        )


def _stage_line(seed: int, record: StageRecord) -> Line:
    info = record.info
    model = record.kind.partition(" ")[2]
    scores = (numbers.points(info[name]) for name in ("before", "replaced", "fitted"))
    same = NOTHING if info["same"] is None else f"{info['same']:.1%}"
    return Line(text_cells(str(seed), model, f"{info['examples']:,}", *scores, same))
