"""Accuracy against latency or file size, as a Vega-Lite chart: Pareto front, intervals, a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import numbers
from .drawing import SOFT, heading, layered, wrapped
from .points import HEIGHT, WIDTH, Frame, Point, area, frame_of, pareto, points_of, shape_of
from .runs import Shape, Task
from .tables import metric_name

if TYPE_CHECKING:
    import altair

_SHORT = 40  # characters of a label of which two stand side by side in the legend


def chart(task: Task, *, by_size: bool = False) -> Any:
    """The chart of one task, without data from outside. It is by size where nothing was timed."""
    import altair as alt

    points = points_of(task, by_size=by_size)
    frame = frame_of(points)
    x = alt.X(
        "x:Q", title=_x_title(task, None if by_size else shape_of(task)), scale=_x_scale(frame), axis=_x_axis(frame)
    )
    domain = [round(value, 4) for value in frame.y]
    y = alt.Y("y:Q", title=_y_title(task), scale=alt.Scale(domain=domain, zero=False, nice=False))
    layers = [*_lines(points, x, y), _marks(points, x, y)]
    name = f"{task.first.task.title}, by file size" if by_size else task.first.task.title
    title = heading(name, _subtitle(task, by_size), WIDTH)
    return layered(*layers, width=WIDTH, height=HEIGHT, title=title)


def _x_title(task: Task, shape: Shape | None) -> str:
    if shape is None:
        return "File size, MB"
    what = (
        "one text at a time, the task's own lengths" if shape == (0, 0) else f"batch × length {numbers.shape(*shape)}"
    )
    name = "CPU time" if task.cpu_time else "Latency p50"
    return f"{name}, ms ({what}; ONNX Runtime unless said)"


def _y_title(task: Task) -> str:
    name = metric_name(task)
    return f"{name[0].upper()}{name[1:]}, points"


def _subtitle(task: Task, by_size: bool) -> list[str]:
    seeds = max(len(variant.runs) for variant in task.variants)
    lines = [
        f"Bars: 95% interval of the difference to {task.teacher}; one that crosses the dotted line: not distinguishable."
    ]
    front = "Step line: Pareto front." if by_size else "Step line: Pareto front. Area: file size."
    lines.append(f"{front} Points: mean over {seeds} seeds." if seeds > 1 else front)
    notes = dict.fromkeys(note for result in task.results for note in result.task.data.notes)
    return [*lines, *(f"Note: {note}." for note in notes)]


def _x_scale(frame: Frame) -> Any:
    import altair as alt

    domain = [float(f"{value:.6g}") for value in frame.x]
    return alt.Scale(type="log" if frame.logarithmic else "linear", domain=domain, nice=False)


def _x_axis(frame: Frame) -> Any:
    import altair as alt

    if not frame.logarithmic:
        return alt.Axis(tickCount=7, grid=False)
    ticks = [base * 10.0**power for power in range(-4, 7) for base in (1, 2, 5)]
    return alt.Axis(values=[tick for tick in ticks if frame.x[0] <= tick <= frame.x[1]], format="~g", grid=False)


def _lines(points: Sequence[Point], x: Any, y: Any) -> list[altair.Chart]:
    """The teacher's score, the Pareto front, the intervals."""
    import altair as alt

    front = [{"x": point.x, "y": point.y} for point in pareto(points)]
    bars = [
        {"x": p.x, "y": p.low, "high": p.high, "colour": p.colour} for p in points if p.high > p.low and not p.eager
    ]
    layers = [
        alt.Chart(alt.Data(values=[{"y": points[0].y}]))
        .mark_rule(strokeDash=[2, 3], color=SOFT, aria=False)
        .encode(y=y)
    ]
    if len(front) > 1:
        line = alt.Chart(alt.Data(values=front)).mark_line(
            interpolate="step-after", strokeWidth=1.5, color=SOFT, opacity=0.75, aria=False
        )
        layers.append(line.encode(x=x, y=y))
    if bars:
        rules = alt.Chart(alt.Data(values=bars)).mark_rule(strokeWidth=2, opacity=0.65, aria=False)
        layers.append(rules.encode(x=x, y=y, y2=alt.Y2("high:Q"), color=alt.Color("colour:N", scale=None, legend=None)))
    return layers


def _marks(points: Sequence[Point], x: Any, y: Any) -> altair.Chart:
    """A mark per model, told apart by fill and shape, with the legend below."""
    import altair as alt

    largest = max(point.file_bytes for point in points)
    labels = ["\n".join(wrapped(point.label, WIDTH)) for point in points]
    values = [
        {"label": label, "x": p.x, "y": p.y, "area": round(area(p, largest), 2), "tip": tooltip(p.tip)}
        for label, p in zip(labels, points, strict=True)
    ]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=2 if max(map(len, labels)) <= _SHORT else 1,
        columnPadding=80,  # fonts differ: that much more may a label of 40 characters need than Vega thinks
        labelExpr="split(datum.label, '\\n')",
        labelLimit=0,
        symbolSize=120,
        symbolStrokeWidth=0,
    )
    mark = alt.Chart(alt.Data(values=values)).mark_point(opacity=0.92, strokeWidth=0)
    return mark.encode(
        x=x,
        y=y,
        size=alt.Size("area:Q", scale=None, legend=None),
        fill=alt.Fill("label:N", scale=alt.Scale(domain=labels, range=[p.colour for p in points]), legend=legend),
        shape=alt.Shape("label:N", scale=alt.Scale(domain=labels, range=[p.mark for p in points]), legend=legend),
        description=alt.Description("tip:N"),
    )


def tooltip(tip: dict[str, str]) -> str:
    """`Score: 90.14; File: 90.9 MB`: what a pointer on a mark shows, and a reader for the blind says."""
    return "; ".join(f"{name}: {value}" for name, value in tip.items())
