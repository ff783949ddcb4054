"""Charts drawn by several processes equal those drawn by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compress.report.pictures import drawing, parallel_drawing
from compress.report.pictures.drawing import channel, mark, svg
from compress.report.pictures.parallel_drawing import drawn_ahead


def charts(count: int, first: float = 0.1) -> list[dict[str, Any]]:
    encoding = {"x": channel("x:Q"), "y": channel("y:Q")}
    return [mark("point", [{"x": first + number, "y": 1 / 3}], encoding, tooltip=None) for number in range(count)]


@pytest.fixture
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the charts that this process draws."""
    documents: list[str] = []

    def picture(document: str) -> str:
        documents.append(document)
        return alone(document)

    alone = drawing.picture
    monkeypatch.setattr(drawing, "picture", picture)
    monkeypatch.setattr(parallel_drawing, "picture", picture)
    drawing._draw_once.cache_clear()
    return documents


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda count: monkeypatch.setattr(parallel_drawing, "usable_cores", lambda: count)


def test_each_chart_is_drawn_once_by_some_process(drawn_here: list[str], cores: Callable[[int], None]) -> None:
    expected = svg(charts(17))
    assert len(drawn_here) == 17
    drawing._draw_once.cache_clear()
    drawn_here.clear()
    cores(3)
    with drawn_ahead([*charts(17), *charts(2)]):
        assert svg(charts(17)) == expected
    assert len(drawn_here) == 9  # the other process has drawn eight
    assert not drawing.DRAWN


def test_few_charts_or_one_core_start_no_process(
    drawn_here: list[str], cores: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_drawing, "run", lambda *_: pytest.fail("it started a process"))
    for count, many in ((2, 15), (1, 40)):
        cores(count)
        with drawn_ahead(charts(many)):
            assert drawn_here == []
    with drawn_ahead([]):
        pass


@pytest.mark.parametrize(
    "case", [("_PROGRAM", "import sys; sys.exit('no room')"), ("_PROGRAM", "print('{')"), ("sys.executable", "/none")]
)
def test_what_another_process_cannot_draw_is_drawn_here(
    drawn_here: list[str], cores: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, case: tuple[str, str]
) -> None:
    cores(2)
    name, value = case
    monkeypatch.setattr(f"compress.report.pictures.parallel_drawing.{name}", value)
    with drawn_ahead(charts(16, 0.2)):
        assert len(drawn_here) == 16
        svg(charts(16, 0.2))
        assert len(drawn_here) == 16
