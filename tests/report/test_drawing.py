"""Pictures without the attributes that only Vega's scripts read: everything visible or read aloud stays."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

import altair as alt
import pytest

from compress.report.page import tasks_of
from compress.report.pictures.drawing import (  # fmt: skip
    FONT,
    VEGALITE,
    channel,
    charts_below,
    charts_beside,
    inline,
    layer_charts,
    mark,
    shrink_svg,
    specification,
    svg,
)
from compress.report.pictures.plot import chart
from compress.report.sections import reliability
from compress.results import Result

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

    rows = [{"a": x, "b": x * x, "label": f"point {x}: {x * x}"} for x in range(5)]
    encoding = {"x": channel("a:Q"), "y": channel("b:Q"), "description": channel("label:N")}
    document = specification(layer_charts(mark("point", rows, encoding), mark("line", rows, encoding)))
    return vl_convert.vegalite_to_svg(document, vl_version=VEGALITE)


def visible(picture: str) -> Counter:
    """Count the visible elements, shapes with a path and words, with their inherited style and lengths in hundredths of a pixel."""
    counts: Counter = Counter()

    def walk(element: ElementTree.Element, style: dict[str, str]) -> None:
        style = style | {name: value for name, value in element.items() if name in STYLE}
        kind = element.tag.rpartition("}")[2]
        if kind in ("path", "line", "rect", "text") and element.get("d", "M1") not in ("", "M0,0h0v0h0Z"):
            shape = [_hundredths(element.get(name, USUAL.get(name, ""))) for name in SHAPE]
            counts[(kind, element.text, *shape, *(style.get(name, USUAL.get(name)) for name in STYLE))] += 1
        for child in element:
            walk(child, style)

    walk(ElementTree.fromstring(picture), {})
    return counts


def _hundredths(lengths: str) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: str(round(float(number[0]), 2)).removesuffix(".0"), lengths)


def test_all_that_is_seen_stays(drawn: str) -> None:
    less = shrink_svg(drawn)
    assert len(less) < 0.65 * len(drawn)
    assert visible(less) == visible(drawn)
    assert less.count("font-family") == 1 and ElementTree.fromstring(less).get("font-family") == FONT
    assert shrink_svg(less) == less


def test_marks_keep_their_labels(drawn: str) -> None:
    assert inline(shrink_svg(drawn)).count("<title>point ") == inline(drawn).count("<title>point ") >= 5


def test_charts_are_those_that_altair_makes() -> None:
    rows = [{"a": 1, "b": 2}]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("a:Q", title=None), y="b:O", y2="c:Q", color=alt.value("red")
    )
    lone = alt.Chart(alt.Data(values=[{"a": 3}])).mark_rule(aria=False).encode(x="a:N")
    encoding = {"x": channel("a:Q", title=None), "y": channel("b:O"), "y2": {"field": "c"}, "color": {"value": "red"}}
    mine = [mark("point", rows, encoding, size=9, fill=None), mark("line", rows, encoding)]
    theirs = [base.mark_point(size=9, fill=None), base.mark_line()]
    other = mark("rule", [{"a": 3}], {"x": channel("a:N")}, aria=False)
    for actual, expected in (
        (layer_charts(*mine, width=90), alt.layer(*theirs).properties(width=90)),
        (layer_charts(mine[0], other), alt.layer(theirs[0], lone)),
        (charts_beside(layer_charts(*mine), other, spacing=9), alt.hconcat(alt.layer(*theirs), lone, spacing=9)),
        (charts_below(other, mine[1]), alt.vconcat(lone, theirs[1])),
    ):
        assert actual == {name: part for name, part in expected.to_dict().items() if name not in ("$schema", "config")}


def test_charts_of_a_report_are_in_order(realistic: list[Result]) -> None:
    """Validated by the Vega-Lite schema in Altair."""
    tasks = tasks_of(realistic)
    documents = [*map(chart, tasks), *(chart(task, by_size=True) for task in tasks), *reliability.charts(tasks)]
    assert documents
    for document in documents:
        alt.Chart.from_dict({"$schema": alt.SCHEMA_URL, **specification(document)}, validate=True)


@pytest.mark.parametrize(("count", "columns", "shown"), [(2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 3, 3), (3, 1, 1)])
def test_charts_of_a_sheet_are_whole_and_apart(count: int, columns: int, shown: int) -> None:
    """Each equals the same chart alone; none overlaps another or exceeds the sheet; also with one row or column."""
    point = mark("point", [{"a": 1}], {})
    charts = [{**point, "width": 50.5 + 30 * n, "height": 90.2 - 9 * n} for n in range(count)]
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
    assert [svg([dict(chart)]) for chart in charts] == [shrink_svg(empty)] * 100 and svg(charts) == sheet
    assert drawn == [specification(chart) for chart in charts]
