"""What pruning left, as a picture: the heads and neurons of each layer, and the score on the tuning split at each budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..recorded_pruning import PrunedPoint, PruningRecord
from ..results import Result
from . import numbers
from .drawing import PAPER, SOFT, heading
from .plot import told
from .points import COLOURS
from .runs import Task, name_of

CELL, NEURONS, CURVE = 20, 240, (480, 220)  # pixels: a head, the bar of all neurons, width and height of the curve
_TAKEN, _KEPT = "taken out", "kept"
_UNITS = {"flops": "Share of the layers' FLOPs left", "latency": "Share of the time left", "size_mb": "File, MB"}


def pruned(tasks: Sequence[Task]) -> list[Result]:
    """The runs that pruned."""
    return [result for task in tasks for result in task.results if result.pruning]


def describe(tasks: Sequence[Task]) -> str:
    """The pictures in words, for those who do not see them."""
    return " ".join(part for result in pruned(tasks) for part in _words(result))


def charts(tasks: Sequence[Task]) -> list[Any]:
    """Of each run what the last stage that prunes left, and a curve for each stage that had several budgets."""
    found = []
    for result in pruned(tasks):
        found.append(_shape(result))
        found += [_curve(result, record) for record in result.pruning if len(record.points) > 1]
    return found


def _words(result: Result) -> Iterator[str]:
    record = result.pruning[-1]
    layers = "; ".join(
        f"layer {number}: {len(heads) or 'no'} heads, {neurons or 'no'} neurons"
        for number, heads, neurons in _layers(record)
    )
    yield f"{_title(result)}. Of {record.layer_heads} heads and {record.layer_neurons:,} neurons each: {layers}."
    for each in result.pruning:
        if len(each.points) > 1:
            listed = "; ".join(
                f"{numbers.points(_final(point))} at {each.budget} {point.reached:.3g}" for point in each.points
            )
            yield f"Tuning score {numbers.points(each.whole)} whole, {listed}."


def _layers(record: PruningRecord) -> Iterator[tuple[int, tuple[int, ...], int]]:
    last = record.points[-1]
    for number, (heads, neurons) in enumerate(zip(last.heads, last.neurons, strict=True), 1):
        yield number, heads, neurons


def _shape(result: Result) -> Any:
    import altair as alt

    record = result.pruning[-1]
    cells = [
        {"layer": number, "head": head, "state": _KEPT if head in heads else _TAKEN}
        for number, heads, _ in _layers(record)
        for head in range(record.layer_heads)
    ]
    for cell in cells:
        cell["tip"] = told({"Layer": str(cell["layer"]), "Head": str(cell["head"]), "": cell["state"]})
    scale = alt.Scale(domain=[_KEPT, _TAKEN], range=[COLOURS[0], PAPER])
    layer = alt.Y("layer:O", title="Layer", axis=alt.Axis(ticks=False, domain=False, labelOverlap=False))
    heads = (
        alt.Chart(alt.Data(values=cells))
        .mark_point(shape="square", size=(CELL - 6) ** 2, stroke=SOFT, strokeWidth=0.8, opacity=1)
        .encode(
            x=alt.X(
                "head:O",
                title="Head, from 0",
                axis=alt.Axis(labelAngle=0, ticks=False, domain=False, labelOverlap=False),
            ),
            y=layer,
            fill=alt.Fill("state:N", scale=scale, legend=alt.Legend(title=None, orient="bottom")),
            description="tip:N",
        )
        .properties(width=CELL * record.layer_heads, height=alt.Step(CELL))
    )
    return alt.hconcat(heads, _neurons(record), spacing=24).properties(
        title=heading(_title(result), ["After the last prune stage."], CURVE[0])
    )


def _neurons(record: PruningRecord) -> Any:
    import altair as alt

    whole = record.layer_neurons
    rows = [
        {"layer": number, "kept": neurons, "whole": whole, "label": f"{neurons:,}" if neurons else "none"}
        for number, _, neurons in _layers(record)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("layer:O", title=None, axis=alt.Axis(labels=False, ticks=False, domain=False))
    )
    scale = alt.Scale(domain=[0, whole], nice=False)
    axis = alt.Axis(values=[0, whole], format=",d")
    x = alt.X("kept:Q", title="Neurons kept", scale=scale, axis=axis)
    bars = base.mark_bar(height=CELL - 6, color=COLOURS[0], aria=False).encode(x=x)
    frames = base.mark_bar(height=CELL - 6, fill=None, stroke=SOFT, strokeWidth=0.8, aria=False).encode(
        x=alt.X("whole:Q", title="Neurons kept", scale=scale, axis=axis)
    )
    texts = base.mark_text(align="left", dx=6, fontSize=11, color=SOFT).encode(x=alt.value(NEURONS), text="label:N")
    return alt.layer(bars, frames, texts).properties(width=NEURONS, height=alt.Step(CELL))


def _curve(result: Result, record: PruningRecord) -> Any:
    import altair as alt

    rows = [
        {"x": point.reached, "y": value, "what": what, **_interval(record, point, value)}
        for point in record.points
        for what, value in (("pruned", point.pruned), ("repaired", point.repaired))
        if value is not None
    ]
    for row in rows:
        tip = {"Tuning score": numbers.points(row["y"]), _UNITS[record.budget]: f"{row['x']:.3g}", "": row["what"]}
        row["tip"] = told(tip)
    kinds = list(dict.fromkeys(row["what"] for row in rows))
    colours = alt.Scale(domain=kinds, range=[COLOURS[1], COLOURS[0]][: len(kinds)])
    colour = alt.Color("what:N", scale=colours, legend=alt.Legend(title=None, orient="bottom"))
    x = alt.X("x:Q", title=_UNITS[record.budget], scale=alt.Scale(zero=False, padding=16))
    y = alt.Y("y:Q", title="Tuning score, points", scale=alt.Scale(zero=False))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, color=colour)
    lines = base.mark_line(strokeWidth=1.5, aria=False).encode(y=y)
    bars = base.mark_rule(strokeWidth=1.5, aria=False).encode(
        y=alt.Y("low:Q", title="Tuning score, points"), y2="high:Q"
    )
    marks = base.mark_point(size=40, opacity=1, filled=True).encode(y=y, description="tip:N")
    whole = (
        alt.Chart(alt.Data(values=[{"y": record.whole}]))
        .mark_rule(strokeDash=[2, 3], color=SOFT, aria=False)
        .encode(y=alt.Y("y:Q", title="Tuning score, points"))
    )
    lines_below = [f"Stage {record.stage}. Bars: 95% interval of the difference to the whole model (dotted)."]
    caption = heading(_title(result), lines_below, CURVE[0])
    return alt.layer(whole, bars, lines, marks).properties(width=CURVE[0], height=CURVE[1], title=caption)


def _interval(record: PruningRecord, point: PrunedPoint, value: float) -> dict[str, float]:
    """Of the model that was held against the whole one: repaired, if anything was."""
    if value is not _final(point):
        return {}
    return {"low": record.whole + point.delta.low, "high": record.whole + point.delta.high}


def _final(point: PrunedPoint) -> float:
    return point.pruned if point.repaired is None else point.repaired


def _title(result: Result) -> str:
    return f"{result.recipe.get('title') or name_of(result)}, {result.task.title}, seed {result.seed}"
