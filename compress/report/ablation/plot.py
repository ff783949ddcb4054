"""An ablation as a picture: a line per row with its difference to the full recipe, its interval, and the published difference."""

from __future__ import annotations

from typing import Any

from ..pictures.drawing import PAPER, SOFT, channel, heading, label_width, layer_charts, mark, svg
from ..pictures.plot import tooltip
from ..pictures.plot_points import COLOURS
from ..sections.differences import NOT_DISTINGUISHABLE, difference_cell
from ..text import numbers
from .compare import Ablation, Measure

WIDTH, STEP = 460, 28  # pixels, of the difference axis and per row


def picture(ablation: Ablation) -> str:
    """Return SVG on white."""
    return svg([_chart(ablation)])


def describe(ablation: Ablation) -> str:
    """Describe the picture in words, as its alternative text."""
    listed = "; ".join(
        f"{entry.label}: {numbers.signed(delta.points)} ({numbers.signed(delta.low)} to {numbers.signed(delta.high)})"
        for entry in ablation.entries
        if (delta := entry.mean.delta)
    )
    return f"Difference to the full recipe in points, {_task_title(ablation)}. {listed}."


def _task_title(ablation: Ablation) -> str:
    titles = [info.marked_title for info in ablation.tasks.values()]
    return titles[0] if len(titles) == 1 else f"mean of {len(titles)} tasks"


def _chart(ablation: Ablation) -> dict[str, Any]:
    rows = _values(ablation)
    labels = [row["row"] for row in rows]
    plain = {"title": None, "labelLimit": 0, "labelOverlap": False, "ticks": False, "domain": False}
    axis = {**plain, "labelPadding": 8, "minExtent": label_width(labels)}
    y = channel("row:N", sort=labels, axis=axis, scale={"domain": labels})
    bars = {"x": _x("low"), "x2": {"field": "high"}, "y": y}
    layers = [
        mark("rule", [{"x": 0}], {"x": _x("x")}, strokeDash=[2, 3], color=SOFT, aria=False),
        mark("rule", rows, bars, strokeWidth=2, color=COLOURS[0], opacity=0.65, aria=False),
        *_point_layers(rows, y),
    ]
    published = [row for row in rows if "published" in row]
    if published:
        encoding = {"x": _x("published"), "y": y, "description": channel("tip:N")}
        layers.append(mark("point", published, encoding, shape="diamond", size=60, color=COLOURS[1]))
    subtitle = [*_subtitle(bool(published)), f"Points to the full recipe: {_task_title(ablation)}."]
    title = heading(ablation.title, subtitle, WIDTH)
    return layer_charts(*layers, width=WIDTH, height=STEP * len(rows), title=title)


def _point_layers(rows: list[dict[str, Any]], y: Any) -> list[dict[str, Any]]:
    """Return the points: filled if the interval does not contain 0, a ring if it does."""
    encoding = {"x": _x("points"), "y": y, "description": channel("tip:N")}
    layers = []
    for distinguishable in (True, False):
        values = [row for row in rows if row["distinguishable"] is distinguishable]
        if values:
            look = {"stroke": COLOURS[0], "fill": COLOURS[0] if distinguishable else PAPER, "strokeWidth": 1.5}
            layers.append(mark("point", values, encoding, size=70, opacity=1, **look))
    return layers


def _x(field: str) -> dict[str, Any]:
    """Return the axis shared by all that is drawn along it."""
    title = "Difference to the full recipe, points"
    return channel(f"{field}:Q", title=title, scale={"zero": True}, axis={"tickCount": 8})


def _values(ablation: Ablation) -> list[dict[str, Any]]:
    values = []
    for entry in ablation.entries:
        delta, difference = entry.mean.delta, ablation.difference(entry)
        if delta is not None:
            row = {"row": entry.label, "points": delta.points, "low": delta.low, "high": delta.high}
            row |= {
                "distinguishable": entry.mean.is_more_than_chance,
                "tip": tooltip(_tooltip_fields(entry.label, entry.mean, difference)),
            }
            values.append(row | ({} if difference is None else {"published": difference}))
    return values


def _tooltip_fields(label: str, measure: Measure, published: float | None) -> dict[str, str]:
    tip = {"Variant": label, "Difference": str(difference_cell(measure.delta, measure.corrected))}
    return tip if published is None else tip | {"Published difference": numbers.signed(published)}


def _subtitle(published: bool) -> list[str]:
    lines = [f"Bars: 95% interval. Filled: more than chance; ring: {NOT_DISTINGUISHABLE} from the full recipe."]
    return [*lines, *(["Diamonds: as published, of another teacher, student and data."] if published else [])]
