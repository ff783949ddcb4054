"""What pruning left of each layer, and what repair and recovery gave back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..recorded_pruning import PrunedPoint, PruningRecord
from ..results import Result
from . import numbers
from .runs import Variant
from .tables import NOTHING, Column, Line, Table, against, text_cells
from .words import KIND_WORDS


def pruned_tables(variant: Variant) -> Iterator[Table]:
    """Two tables, where a stage of the recipe prunes: scores on the tuning split at each budget, and heads and neurons by layer."""
    found = [(run, record) for run in variant.runs for record in run.pruning]
    if not found:
        return
    measure = KIND_WORDS[variant.first.task.kind].divergence.format("the whole model")
    scores = (
        Column("Seed"),
        Column("Stage", numeric=False),
        Column("Judged by", numeric=False),
        Column("Repair", numeric=False),
        Column("Budget", numeric=False),
        Column("Reached"),
        Column("Layers' FLOPs left"),
        Column("Whole", "points"),
        Column("Pruned", "points"),
        Column("Repaired", "points"),
        Column("Recovered", "points"),
        Column("Against the whole", "points, 95% interval"),
        Column("Same decisions", "pruned / repaired"),
        Column("Divergence", f"{measure}; pruned / repaired"),
    )
    yield Table("Pruning on the tuning split", scores, tuple(line for pair in found for line in _scores(*pair)))
    columns = (
        Column("Seed"),
        Column("Layer"),
        Column("Heads kept"),
        Column("Which, from 0", numeric=False),
        Column("Neurons kept"),
    )
    yield Table(
        "What pruning left of each layer", columns, tuple(line for run in variant.runs for line in _layers(run))
    )


def _scores(run: Result, record: PruningRecord) -> Iterator[Line]:
    for number, point in enumerate(record.points, 1):
        recovered = record.recovered if number == len(record.points) else None
        values = (record.whole, point.pruned, point.repaired, recovered)
        scores = (NOTHING if each is None else numbers.points(each) for each in values)
        budget = f"{record.budget} {point.budget:g}"
        how = record.score, record.repair or NOTHING
        cells = str(run.seed), record.stage, *how, budget, f"{point.reached:.3g}", f"{point.flops:.1%}", *scores
        yield Line((*text_cells(*cells), against(point.delta), *text_cells(*_nearness(point))))


def _nearness(point: PrunedPoint) -> tuple[str, str]:
    """To the whole model: the share of equal decisions, and the divergence of the outputs."""
    same = _before_after(point.same, point.repaired_same, "{:.1%}".format)
    return same, _before_after(point.divergence, point.repaired_divergence, "{:.3g}".format)


def _before_after(before: float | None, after: float | None, write: Callable[[float], str]) -> str:
    found = [NOTHING if each is None else write(each) for each in (before, after)]
    return " / ".join(found) if set(found) != {NOTHING} else NOTHING


def _layers(run: Result) -> Iterator[Line]:
    """After the last stage that prunes."""
    last = run.pruning[-1].points[-1]
    for number, (heads, neurons) in enumerate(zip(last.heads, last.neurons, strict=True), 1):
        which = ", ".join(map(str, heads)) or NOTHING
        kept = (f"{count:,}" if count else "none" for count in (len(heads), neurons))
        yield Line(text_cells(str(run.seed), str(number), next(kept), which, next(kept)))
