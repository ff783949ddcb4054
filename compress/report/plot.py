"""Accuracy against latency, as a Vega-Lite chart: Pareto front, intervals, file size, a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import numbers
from .points import HEIGHT, WIDTH, Frame, Point, area, frame_of, pareto, points_of, shape_of
from .runs import Task
from .tables import metric_name

if TYPE_CHECKING:
    import altair

FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"
LIGHT = {"ink": "#1f2328", "soft": "#6e7781", "line": "#d8dee4", "paper": "#ffffff"}
DARK = {"ink": "#e6edf3", "soft": "#9198a1", "line": "#30363d", "paper": "#151b23"}
TIPS = ("Model", "Score", "95% interval", "CPU time", "p50", "Speed-up", "File")


def chart(task: Task) -> Any:
    """The chart of one task, without data from outside and with its colours as parameters (see `LIGHT`, `DARK`)."""
    import altair as alt

    points = points_of(task)
    frame = frame_of(points)
    x = alt.X("x:Q", title=_x_title(task), scale=_x_scale(frame), axis=_x_axis(frame))
    domain = [round(value, 4) for value in frame.y]
    y = alt.Y("y:Q", title=_y_title(task), scale=alt.Scale(domain=domain, zero=False, nice=False))
    layers = [*_lines(points, x, y), _marks(points, x, y)]
    title = alt.TitleParams(task.first.task.title, subtitle=_subtitle(task), anchor="start", offset=14)
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def _x_title(task: Task) -> str:
    shape = shape_of(task)
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


def _subtitle(task: Task) -> list[str]:
    seeds = max(len(variant.runs) for variant in task.variants)
    lines = [
        "Bars: 95% interval of the difference to the teacher; one that crosses the dotted line: not distinguishable."
    ]
    front = "Step line: Pareto front. Area: file size."
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


def colour(name: str) -> Any:
    """A colour of the palette (see `LIGHT`), which the page may change after drawing."""
    import altair as alt

    return alt.ExprRef(name)


def _lines(points: Sequence[Point], x: Any, y: Any) -> list[altair.Chart]:
    """The teacher's score, the Pareto front, the intervals."""
    import altair as alt

    front = [{"x": point.x, "y": point.y} for point in pareto(points)]
    bars = [
        {"x": p.x, "y": p.low, "high": p.high, "colour": p.colour} for p in points if p.high > p.low and not p.eager
    ]
    layers = [
        alt.Chart(alt.Data(values=[{"y": points[0].y}]))
        .mark_rule(strokeDash=[2, 3], color=colour("soft"), tooltip=None)
        .encode(y=y)
    ]
    if len(front) > 1:
        line = alt.Chart(alt.Data(values=front)).mark_line(
            interpolate="step-after", strokeWidth=1.5, color=colour("soft"), opacity=0.75, tooltip=None
        )
        layers.append(line.encode(x=x, y=y))
    if bars:
        rules = alt.Chart(alt.Data(values=bars)).mark_rule(strokeWidth=2, opacity=0.65, tooltip=None)
        layers.append(rules.encode(x=x, y=y, y2="high:Q", color=alt.Color("colour:N", scale=None, legend=None)))
    return layers


def _marks(points: Sequence[Point], x: Any, y: Any) -> altair.Chart:
    """A mark per model, told apart by fill and shape, with the legend below."""
    import altair as alt

    largest = max(point.file_bytes for point in points)
    values = [{"label": p.label, "x": p.x, "y": p.y, "area": round(area(p, largest), 2), **p.tip} for p in points]
    labels = [point.label for point in points]
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, labelLimit=WIDTH // 2, symbolSize=120, symbolStrokeWidth=0
    )
    mark = alt.Chart(alt.Data(values=values)).mark_point(opacity=0.92, strokeWidth=0)
    return mark.encode(
        x=x,
        y=y,
        size=alt.Size("area:Q", scale=None, legend=None),
        fill=alt.Fill("label:N", scale=alt.Scale(domain=labels, range=[p.colour for p in points]), legend=legend),
        shape=alt.Shape("label:N", scale=alt.Scale(domain=labels, range=[p.mark for p in points]), legend=legend),
        tooltip=[alt.Tooltip(f"{name}:N") for name in TIPS if any(name in value for value in values)],
    )


def specification(charts: Sequence[Any], colours: dict[str, str]) -> dict[str, Any]:
    """A Vega-Lite document of one or several charts."""
    import altair as alt

    whole = charts[0] if len(charts) == 1 else alt.concat(*charts, columns=1 if len(charts) < 3 else 2, spacing=40)
    whole = (
        whole.resolve_scale(x="independent", y="independent", fill="independent", shape="independent")
        if len(charts) > 1
        else whole
    )
    whole = whole.configure(**_config())
    document = whole.to_dict()
    document["params"] = [{"name": name, "value": value} for name, value in colours.items()]
    return document


def _config() -> dict[str, Any]:
    axis = {"labelColor": {"expr": "soft"}, "titleColor": {"expr": "ink"}, "domainColor": {"expr": "line"}}
    axis |= {"tickColor": {"expr": "line"}, "gridColor": {"expr": "line"}, "gridOpacity": 0.6, "labelFontSize": 11}
    axis |= {"titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 10}
    title = {"color": {"expr": "ink"}, "subtitleColor": {"expr": "soft"}, "fontSize": 15, "subtitleFontSize": 11.5}
    return {
        "font": FONT,
        "background": {"expr": "paper"},
        "padding": 14,
        "view": {"stroke": None},
        "axis": axis,
        "legend": {"labelColor": {"expr": "ink"}, "labelFontSize": 11.5},
        "title": title | {"fontWeight": 600, "subtitlePadding": 5, "subtitleLineHeight": 15},
    }
