"""An ablation as a picture: a line per row with its difference to the full recipe, its interval, and the paper's."""

from __future__ import annotations

from typing import Any

from .. import numbers
from ..plot import LIGHT, colour, specification
from ..points import COLOURS
from ..render import svg
from ..tables import NOT_DISTINGUISHABLE
from .compare import Ablation

WIDTH, STEP = 460, 28  # pixels, of the difference axis and per row


def picture(ablation: Ablation) -> str:
    """SVG on white."""
    return svg(specification([_chart(ablation)], LIGHT))


def describe(ablation: Ablation) -> str:
    """The picture in words, for those who do not see it."""
    listed = "; ".join(
        f"{entry.label}: {numbers.signed(delta.points)} ({numbers.signed(delta.low)} to {numbers.signed(delta.high)})"
        for entry in ablation.entries
        if (delta := entry.mean.delta)
    )
    return f"Difference to the full recipe in points, {_of(ablation)}. {listed}."


def _of(ablation: Ablation) -> str:
    titles = [info.title for info in ablation.tasks.values()]
    return titles[0] if len(titles) == 1 else f"mean of {len(titles)} tasks"


def _chart(ablation: Ablation) -> Any:
    import altair as alt

    rows = _values(ablation)
    labels = [row["row"] for row in rows]
    axis = alt.Axis(title=None, labelLimit=320, ticks=False, domain=False)
    y = alt.Y("row:N", sort=labels, axis=axis, scale=alt.Scale(domain=labels))
    bars = alt.Chart(alt.Data(values=rows)).mark_rule(strokeWidth=2, color=COLOURS[0], opacity=0.65)
    layers = [
        alt.Chart(alt.Data(values=[{"x": 0}])).mark_rule(strokeDash=[2, 3], color=colour("soft")).encode(x=_x("x")),
        bars.encode(x=_x("low"), x2="high:Q", y=y),
        *_marks(rows, y),
    ]
    published = [row for row in rows if "published" in row]
    if published:
        mark = alt.Chart(alt.Data(values=published)).mark_point(shape="diamond", size=60, color=COLOURS[1])
        layers.append(mark.encode(x=_x("published"), y=y))
    subtitle = [*_subtitle(bool(published)), f"Points to the full recipe: {_of(ablation)}."]
    title = alt.TitleParams(ablation.title, subtitle=subtitle, anchor="start", offset=14)
    return alt.layer(*layers).properties(width=WIDTH, height=STEP * len(rows), title=title)


def _marks(rows: list[dict[str, Any]], y: Any) -> list[Any]:
    """Filled where the interval does not hold 0, a ring where it does."""
    import altair as alt

    layers = []
    for distinguishable in (True, False):
        values = [row for row in rows if row["distinguishable"] is distinguishable]
        if values:
            inside = COLOURS[0] if distinguishable else "#ffffff"
            mark = alt.Chart(alt.Data(values=values)).mark_point(
                size=70, stroke=COLOURS[0], fill=inside, strokeWidth=1.5, opacity=1
            )
            layers.append(mark.encode(x=_x("points"), y=y))
    return layers


def _x(field: str) -> Any:
    """One axis for all that is drawn along it."""
    import altair as alt

    return alt.X(f"{field}:Q", title="Difference to the full recipe, points", scale=alt.Scale(zero=True))


def _values(ablation: Ablation) -> list[dict[str, Any]]:
    values = []
    for entry in ablation.entries:
        delta, difference = entry.mean.delta, ablation.difference(entry)
        if delta is not None:
            row = {"row": entry.label, "points": delta.points, "low": delta.low, "high": delta.high}
            told = {} if difference is None else {"published": difference}
            values.append(row | {"distinguishable": delta.distinguishable} | told)
    return values


def _subtitle(published: bool) -> list[str]:
    lines = [f"Bars: 95% interval. Filled: more than chance; ring: {NOT_DISTINGUISHABLE} from the full recipe."]
    return [*lines, *(["Diamonds: as published, of another teacher, student and data."] if published else [])]
