"""What pruning left of each layer, and how much repair and recovery regained."""

from __future__ import annotations

from collections.abc import Iterator

from ...results import Result
from ...results.pruning import PrunedPoint, PruningRecord
from ..grouping.groups import Variant
from ..text import numbers
from ..text.cells import NOTHING, Column, Line, Table, text_cells
from ..text.words import KIND_WORDS
from .differences import difference_cell


def pruned_tables(variant: Variant) -> Iterator[Table]:
    """Yield three tables, if a stage of the recipe prunes: for each budget the scores on the tuning split, and how close the answers are to
    the whole model's; and heads and neurons by layer."""
    records = [(run, record) for run in variant.runs for record in run.pruning]
    if not records:
        return
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
    )
    yield Table("Pruning on the tuning split", scores, tuple(line for pair in records for line in _scores(*pair)))
    if lines := [line for pair in records for line in _nearness(*pair)]:
        yield Table("Pruned against whole on the tuning split", _near_columns(variant), tuple(lines))
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
        budget = _budget(record, point)
        how = record.score, record.repair or NOTHING
        cells = str(run.seed), record.stage, *how, budget, f"{point.reached:.3g}", f"{point.flops:.1%}", *scores
        yield Line(text_cells(*cells))


def _budget(record: PruningRecord, point: PrunedPoint) -> str:
    return record.budget if record.budget == "widths" else f"{record.budget} {point.budget:g}"


def _near_columns(variant: Variant) -> tuple[Column, ...]:
    measure = KIND_WORDS[variant.first.task.kind].divergence.format("the whole model")
    return (
        Column("Seed"),
        Column("Stage", numeric=False),
        Column("Budget", numeric=False),
        Column("Model", numeric=False),
        Column("Difference", "points, 95% interval"),
        Column("Same decisions", "share"),
        Column("Divergence", measure),
    )


def _nearness(run: Result, record: PruningRecord) -> Iterator[Line]:
    """Yield lines for before and after the repair; old results do not record this."""
    for point in record.points:
        measured = {
            "pruned": (point.divergence, point.same),
            "repaired": (point.repaired_divergence, point.repaired_same),
        }
        pairs = {model: pair for model, pair in measured.items() if pair[0] is not None}
        for number, (model, (divergence, same)) in enumerate(pairs.items(), 1):
            names = str(run.seed), record.stage, _budget(record, point), model
            delta = difference_cell(point.delta if number == len(pairs) else None)
            share = NOTHING if same is None else f"{same:.1%}"
            yield Line((*text_cells(*names), delta, *text_cells(share, f"{divergence:.3g}")))


def _layers(run: Result) -> Iterator[Line]:
    """Yield the layers after the last stage that prunes."""
    last = run.pruning[-1].points[-1]
    for number, (heads, neurons) in enumerate(zip(last.heads, last.neurons, strict=True), 1):
        which = ", ".join(map(str, heads)) or NOTHING
        kept = (f"{count:,}" if count else "none" for count in (len(heads), neurons))
        yield Line(text_cells(str(run.seed), str(number), next(kept), which, next(kept)))
