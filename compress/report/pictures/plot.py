"""Accuracy against latency or file size, as a Vega-Lite chart: Pareto front, intervals, a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..grouping.groups import Shape, Task
from ..grouping.steady_times import drift_sentence
from ..text import numbers
from ..text.words import headline_name, join_words
from .drawing import SOFT, channel, heading, layer_charts, mark, wrap_text
from .plot_points import HEIGHT, WIDTH, Frame, Point, area, frame_of, left_out, pareto, points_of, shape_of

_SHORT = 40  # characters of the longest label with which the legend has two columns


def chart(task: Task, *, by_size: bool = False) -> dict[str, Any]:
    """Return the self-contained chart of one task; by size if nothing was timed."""
    points = points_of(task, by_size=by_size)
    frame = frame_of(points)
    across = _x_title(task, None if by_size else shape_of(task))
    x = channel("x:Q", title=across, scale=_x_scale(frame), axis=_x_axis(frame))
    domain = [round(value, 4) for value in frame.y]
    y = channel("y:Q", title=_y_title(task), scale={"domain": domain, "zero": False, "nice": False})
    shared = task.baseline.headline if len(task.baselines) == 1 else None
    layers = [*_line_layers(points, shared, x, y), _model_marks(points, x, y)]
    name = f"{task.first.task.marked_title}, by file size" if by_size else task.first.task.marked_title
    title = heading(name, _subtitle(task, by_size), WIDTH)
    return layer_charts(*layers, width=WIDTH, height=HEIGHT, title=title)


def _x_title(task: Task, shape: Shape | None) -> str:
    if shape is None:
        return "File size, MB"
    what = (
        "one text at a time, the task's own lengths" if shape == (0, 0) else f"batch × length {numbers.shape(*shape)}"
    )
    name = "CPU time" if task.cpu_time else "Latency p50"
    return f"{name}, ms ({what}; ONNX Runtime unless said)"


def _y_title(task: Task) -> str:
    name = headline_name(task.first.task)
    return f"{name[0].upper()}{name[1:]}, points"


def _subtitle(task: Task, by_size: bool) -> list[str]:
    seeds = sorted({len(variant.runs) for variant in task.variants})
    lines = ["Bars: 95% interval of the difference to the recipe's own teacher."]
    if len(task.baselines) == 1:
        lines = [
            f"Bars: 95% interval of the difference to {task.teacher}; one that crosses the dotted line: not distinguishable."
        ]
    front = "Step line: Pareto front." if by_size else "Step line: Pareto front. Area: file size."
    lines.append(
        front
        if seeds == [1]
        else f"{front} Points: mean over {' to '.join(map(str, seeds[:: max(1, len(seeds) - 1)]))} seeds."
    )
    if not by_size and (drift := drift_sentence([(task, shape_of(task))])):
        lines.append(drift)
    if not by_size and (missing := left_out(task)):
        lines.append(f"Not shown, since not timed so: {join_words(missing)}.")
    notes = dict.fromkeys(note for result in task.results for note in result.task.data.notes)
    return [*lines, *(f"Note: {note}." for note in notes)]


def _x_scale(frame: Frame) -> dict[str, Any]:
    domain = [float(f"{value:.6g}") for value in frame.x]
    return {"type": "log" if frame.logarithmic else "linear", "domain": domain, "nice": False}


def _x_axis(frame: Frame) -> dict[str, Any]:
    if not frame.logarithmic:
        return {"tickCount": 7, "grid": False}
    ticks = [base * 10.0**power for power in range(-4, 7) for base in (1, 2, 5)]
    return {
        "values": [tick for tick in ticks if frame.x[0] <= tick <= frame.x[1]], "format": "~g", "grid": False
    }  # fmt: skip


def _line_layers(points: Sequence[Point], teacher: float | None, x: Any, y: Any) -> list[dict[str, Any]]:
    """Return the score of the teacher that all share, the Pareto front, the intervals."""
    front = [{"x": point.x, "y": point.y} for point in pareto(points)]
    bars = [
        {"x": p.x, "y": p.low, "high": p.high, "colour": p.colour} for p in points if p.high > p.low and not p.eager
    ]
    dotted = {"strokeDash": [2, 3], "color": SOFT, "aria": False}
    layers = [] if teacher is None else [mark("rule", [{"y": teacher}], {"y": y}, **dotted)]
    if len(front) > 1:
        soft = {"color": SOFT, "opacity": 0.75, "aria": False}
        layers.append(mark("line", front, {"x": x, "y": y}, interpolate="step-after", strokeWidth=1.5, **soft))
    if bars:
        colour = channel("colour:N", scale=None, legend=None)
        encoding = {"x": x, "y": y, "y2": {"field": "high"}, "color": colour}
        layers.append(mark("rule", bars, encoding, strokeWidth=2, opacity=0.65, aria=False))
    return layers


def _model_marks(points: Sequence[Point], x: Any, y: Any) -> dict[str, Any]:
    """Return a mark per model, with its own fill and shape, and the legend below."""
    largest = max(point.file_bytes for point in points)
    labels = ["\n".join(wrap_text(point.label, WIDTH)) for point in points]
    values = [
        {"label": label, "x": p.x, "y": p.y, "area": round(area(p, largest), 2), "tip": tooltip(p.tip)}
        for label, p in zip(labels, points, strict=True)
    ]
    legend = {
        "title": None,
        "orient": "bottom",
        "columns": 2 if max(map(len, labels)) <= _SHORT else 1,
        "columnPadding": 80,  # fonts differ: a label of 40 characters may need that much more than Vega assumes
        "labelExpr": "split(datum.label, '\\n')",
        "labelLimit": 0,
        "symbolSize": 120,
        "symbolStrokeWidth": 0,
    }
    colours, shapes = [p.colour for p in points], [p.mark for p in points]
    encoding = {
        "x": x,
        "y": y,
        "size": channel("area:Q", scale=None, legend=None),
        "fill": channel("label:N", scale={"domain": labels, "range": colours}, legend=legend),
        "shape": channel("label:N", scale={"domain": labels, "range": shapes}, legend=legend),
        "description": channel("tip:N"),
    }
    return mark("point", values, encoding, opacity=0.92, strokeWidth=0)


def tooltip(tip: dict[str, str]) -> str:
    """Format e.g. `Score: 90.14; File: 90.9 MB`: shown on hover, and read by screen readers."""
    return "; ".join(f"{name}: {value}" for name, value in tip.items())
