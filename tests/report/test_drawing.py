"""A picture without what only Vega's own scripts read: everything that is seen or said stays."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter

import altair as alt
import pytest

from compress.report.drawing import FONT, VEGALITE, beside, inline, layered, lean, specification, svg

SEEN = ("d", "fill", "stroke", "transform", "x", "y", "width", "height", "font-size", "text-anchor", "stroke-width")


@pytest.fixture(scope="module")
def drawn() -> str:
    import vl_convert

    rows = alt.Data(values=[{"a": x, "b": x * x, "label": f"point {x}: {x * x}"} for x in range(5)])
    chart = alt.Chart(rows).encode(x="a:Q", y="b:Q", description="label:N")
    document = specification([chart.mark_point() + chart.mark_line()])
    return vl_convert.vegalite_to_svg(document, vl_version=VEGALITE)


def visible(picture: str) -> Counter:
    """Every element that paints: shapes with a line to follow, and words."""
    root = ElementTree.fromstring(picture)
    found = [element for element in root.iter() if element.tag.rpartition("}")[2] in ("path", "line", "rect", "text")]
    kept = [element for element in found if element.get("d", "M1") not in ("", "M0,0h0v0h0Z")]
    return Counter((element.tag, element.text, *map(element.get, SEEN)) for element in kept)


def test_all_that_is_seen_stays(drawn: str) -> None:
    less = lean(drawn)
    assert len(less) < 0.75 * len(drawn)
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
    several = specification([layered(*marks), other, beside(*marks)])
    alt.Chart.from_dict({"$schema": alt.SCHEMA_URL, **several}, validate=True)


def test_the_same_picture_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import vl_convert

    drawn: list[dict] = []
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda document, **_: drawn.append(document) or "<svg/>")
    document = {"mark": "point", "width": 57.57911838676986}
    assert svg(document) == svg(dict(document)) and drawn == [document]
