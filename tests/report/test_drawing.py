"""A picture without what only Vega's own scripts read: everything that is seen or said stays."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

import altair as alt
import pytest

from compress.report.drawing import FONT, VEGALITE, beside, inline, layered, lean, specification, svg

SHAPE = ("d", "transform", "x", "y", "x2", "y2", "width", "height")
STYLE = (
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
    "font-size",
    "font-weight",
    "text-anchor",
)
USUAL = {"x2": "0", "y2": "0", "stroke-width": "1", "transform": "translate(0,0)"}


@pytest.fixture(scope="module")
def drawn() -> str:
    import vl_convert

    rows = alt.Data(values=[{"a": x, "b": x * x, "label": f"point {x}: {x * x}"} for x in range(5)])
    chart = alt.Chart(rows).encode(x="a:Q", y="b:Q", description="label:N")
    document = specification(chart.mark_point() + chart.mark_line())
    return vl_convert.vegalite_to_svg(document, vl_version=VEGALITE)


def visible(picture: str) -> Counter:
    """Every element that paints: shapes with a line to follow, and words; with what it inherits, and lengths in hundredths of a pixel."""
    found: Counter = Counter()

    def walk(element: ElementTree.Element, style: dict[str, str]) -> None:
        style = style | {name: value for name, value in element.items() if name in STYLE}
        kind = element.tag.rpartition("}")[2]
        if kind in ("path", "line", "rect", "text") and element.get("d", "M1") not in ("", "M0,0h0v0h0Z"):
            shape = [_hundredths(element.get(name, USUAL.get(name, ""))) for name in SHAPE]
            found[(kind, element.text, *shape, *(style.get(name, USUAL.get(name)) for name in STYLE))] += 1
        for child in element:
            walk(child, style)

    walk(ElementTree.fromstring(picture), {})
    return found


def _hundredths(lengths: str) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: str(round(float(number[0]), 2)).removesuffix(".0"), lengths)


def test_all_that_is_seen_stays(drawn: str) -> None:
    less = lean(drawn)
    assert len(less) < 0.65 * len(drawn)
    assert visible(less) == visible(drawn)
    assert less.count("font-family") == 1 and ElementTree.fromstring(less).get("font-family") == FONT
    assert lean(less) == less


def test_marks_keep_their_labels(drawn: str) -> None:
    assert inline(lean(drawn)).count("<title>point ") == inline(drawn).count("<title>point ") >= 5


def test_charts_that_are_put_together_are_those_of_altair() -> None:
    """Altair checks these; ours are not checked again."""
    base = alt.Chart(alt.Data(values=[{"a": 1, "b": 2}])).encode(x="a:Q", y="b:Q")
    other = alt.Chart(alt.Data(values=[{"a": 3}])).mark_rule().encode(x="a:Q")
    marks = base.mark_point(), base.mark_line()
    for mine, theirs in (
        (layered(*marks, width=90), alt.layer(*marks).properties(width=90)),
        (layered(marks[0], other), alt.layer(marks[0], other)),
        (beside(layered(*marks), other, spacing=9), alt.hconcat(alt.layer(*marks), other, spacing=9)),
    ):
        assert mine == {name: part for name, part in theirs.to_dict().items() if name not in ("$schema", "config")}
    both = specification(beside(layered(*marks), other))
    alt.Chart.from_dict({"$schema": alt.SCHEMA_URL, **both}, validate=True)


@pytest.mark.parametrize(("count", "columns", "shown"), [(2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 3, 3), (3, 1, 1)])
def test_charts_of_a_sheet_are_whole_and_apart(count: int, columns: int, shown: int) -> None:
    """Each is what it is alone; none reaches into another or beyond the sheet; one row or column is one."""
    rows = alt.Data(values=[{"a": 1}])
    charts = [alt.Chart(rows, width=50.5 + 30 * n, height=90.2 - 9 * n).mark_point() for n in range(count)]
    alone = [ElementTree.fromstring(svg([chart])) for chart in charts]
    sheet = ElementTree.fromstring(svg(charts, columns=columns))
    assert sheet.get("font-family") == FONT and sheet[0].tag.endswith("rect")
    placed = []
    for group, picture in zip(sheet[1:], alone, strict=True):
        assert [ElementTree.tostring(part) for part in group] == [ElementTree.tostring(part) for part in picture]
        left, top = map(int, group.get("transform", "").removeprefix("translate(").rstrip(")").split(","))
        width, height = (math.ceil(float(picture.get(name, ""))) for name in ("width", "height"))
        placed.append((left, top, left + width, top + height))
    for at, (left, top, right, bottom) in enumerate(placed):
        assert all(right < other[0] or bottom < other[1] or left > other[2] or top > other[3] for other in placed[:at])
        assert (left, top) == (placed[at % shown][0], placed[at // shown * shown][1])
    ends = str(max(place[2] for place in placed)), str(max(place[3] for place in placed))
    assert (sheet.get("width"), sheet.get("height")) == ends and sheet.get("viewBox") == "0 0 {} {}".format(*ends)


def test_the_same_picture_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import vl_convert

    drawn: list[dict] = []
    empty = '<svg width="1" height="1" viewBox="0 0 1 1"></svg>'
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda document, **_: drawn.append(document) or empty)
    charts = [{"mark": "point", "width": 57.57911838676986 + number} for number in range(100)]
    sheet = svg(charts)
    assert [svg([dict(chart)]) for chart in charts] == [lean(empty)] * 100 and svg(charts) == sheet
    assert drawn == [specification(chart) for chart in charts]
