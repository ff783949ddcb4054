"""A sweep as a picture: a line for each model with the interval of each of its points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..pictures.drawing import channel, heading, layer_charts, mark, svg, wrap_text
from ..pictures.plot import tooltip
from ..pictures.plot_points import COLOURS, SHAPES
from ..text import numbers
from .sweeps import Point, Sweep

WIDTH, HEIGHT = 460, 260  # pixels of a plot
_SPAN = 20  # values that differ by a larger factor have a logarithmic axis
_SHORT = 26  # characters of the longest name with which the legend has two columns


def picture(sweeps: Sequence[Sweep], models: Sequence[str]) -> str:
    """Return SVG on white for one sweep or several; each of the `models` has the same colour and shape in all."""
    return svg([_chart(sweep, models) for sweep in sweeps])


def _chart(sweep: Sweep, models: Sequence[str]) -> dict[str, Any]:
    x, y = _axes(sweep)
    shown = sweep.models
    places = [models.index(name) for name in shown]
    labels = ["\n".join(wrap_text(name, WIDTH)) for name in shown]
    colours = [COLOURS[place % len(COLOURS)] for place in places]
    shapes = [SHAPES[place % len(SHAPES)] for place in places]
    by_name = dict(zip(shown, labels, strict=True))
    legend = _legend(labels)
    base = {"x": x, "y": y, "color": channel("label:N", scale={"domain": labels, "range": colours}, legend=legend)}
    rows = [_point_row(point, sweep, by_name[point.model]) for point in sweep.points]
    layers = [mark("line", rows, base, strokeWidth=1.5, opacity=0.85, aria=False)]
    if known := [row for row in rows if "high" in row]:
        ends = {**base, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        layers.append(mark("rule", known, ends, strokeWidth=2, opacity=0.65, aria=False))
    shape = channel("label:N", scale={"domain": labels, "range": shapes}, legend=legend)
    look = {**base, "shape": shape, "description": channel("tip:N")}
    layers.append(mark("point", rows, look, size=60, opacity=1, filled=True))
    title = heading(sweep.title, [f"{_capital(sweep.fixed)}. Bars: 95% interval."], WIDTH)
    return layer_charts(*layers, width=WIDTH, height=HEIGHT, title=title)


def _axes(sweep: Sweep) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the axes. A step of `x` is a doubling, as lengths, batches and threads are chosen; `y` begins at 0, or is logarithmic too."""
    ticks = sorted({point.x for point in sweep.points})
    across = {"type": "log", "base": 2, "nice": False, "padding": 18}
    x = channel("x:Q", title=sweep.x, scale=across, axis={"values": ticks, "format": ",d", "grid": False})
    values = [point.y for point in sweep.points]
    if min(values) > 0 and max(values) / min(values) > _SPAN:
        tens = [base * 10.0**power for power in range(-4, 8) for base in (1, 2, 5)]
        ends = min(values) / 1.4, max(values) * 1.4
        axis = {"values": [tick for tick in tens if ends[0] <= tick <= ends[1]], "format": ",~g"}
        return x, channel("y:Q", title=sweep.y, scale={"type": "log", "domain": [*ends], "clamp": True}, axis=axis)
    return x, channel("y:Q", title=sweep.y, scale={"zero": True}, axis={"tickCount": 5})


def _legend(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "title": None,
        "orient": "bottom",
        "columns": 2 if max(map(len, labels)) <= _SHORT else 1,
        "columnPadding": 60,  # fonts differ: a label may need that much more than Vega assumes
        "labelExpr": "split(datum.label, '\\n')",
        "labelLimit": 0,
        "symbolSize": 100,
        "symbolStrokeWidth": 0,
    }


def _point_row(point: Point, sweep: Sweep, label: str) -> dict[str, Any]:
    tip = {"Model": point.model, sweep.x: f"{point.x:,}", sweep.y: numbers.significant(point.y)}
    row: dict[str, Any] = {"label": label, "x": point.x, "y": point.y}
    if point.interval is not None:
        low, high = point.interval
        row |= {"low": low, "high": high}
        tip["95% interval"] = f"{numbers.significant(low)} to {numbers.significant(high)}"
    return row | {"tip": tooltip(tip | {"Speed-up": numbers.times(point.speedup)})}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
