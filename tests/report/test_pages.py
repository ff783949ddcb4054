"""Properties of every page: unique names of regions and anchors, scrolling by keyboard, and titles on marks."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from compress.report import write_report
from compress.report.text.names import Names
from compress.results import Result

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A parser that collects elements with their attributes and enclosing tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], tuple[str, ...]]] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}, tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}, tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def of(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes, _ in self.elements if tag in tags]


def test_a_numbered_name_is_not_one_that_is_there() -> None:
    names = Names()
    assert [names.anchor(text) for text in ("int8 2", "int8", "int8", "Int8 2", "é")] == [
        "int8-2", "int8", "int8-3", "int8-2-2", "part",
    ]  # fmt: skip
    assert [names.region("a", text) for text in ("b (2)", "b", "b", "")] == ["a: b (2)", "a: b", "a: b (3)", "a"]


KINDS = pytest.mark.parametrize("kind", ["report", "ablation", "bench"])


def read(pages: dict[str, Path], kind: str) -> Page:
    return Page(pages[kind].read_text(encoding="utf-8"))


@KINDS
def test_no_two_regions_have_one_name(kind: str, pages: dict[str, Path]) -> None:
    page = read(pages, kind)
    regions = [attributes for _, attributes, _ in page.elements if attributes.get("role") == "region"]
    names = Counter(attributes["aria-label"] for attributes in regions)
    assert len(names) > 3
    assert [name for name, count in names.items() if count > 1] == []


@KINDS
def test_what_scrolls_can_be_reached_by_keys(kind: str, pages: dict[str, Path]) -> None:
    page = read(pages, kind)
    scrolling = [attributes for attributes in page.of("div") if attributes.get("class") in ("scroll", "chart")]
    scrolling += page.of("pre")
    assert len(scrolling) > 3
    assert all(attributes.get("tabindex") == "0" and attributes.get("aria-label") for attributes in scrolling)


@KINDS
def test_every_part_can_be_linked_to(kind: str, pages: dict[str, Path]) -> None:
    page = read(pages, kind)
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    headings = [attributes.get("id") for attributes in page.of("h2", "h3")]
    assert headings and None not in headings
    assert set(headings) <= set(ids)
    targets = [attributes["href"] for attributes in page.of("a")]
    assert {f"#{heading}" for heading in headings} <= set(targets)
    assert all(target.startswith("#") and target[1:] in ids for target in targets)


@KINDS
def test_every_mark_has_its_label_without_a_script(kind: str, pages: dict[str, Path]) -> None:
    page = read(pages, kind)
    marks = [
        attributes
        for tag, attributes, _ in page.elements
        if tag == "path" and attributes.get("aria-roledescription") == "point"
    ]
    titles = [around for tag, _, around in page.elements if tag == "title" and "svg" in around]
    assert len(marks) == len(titles) > 1
    assert all(around[-1] == "path" for around in titles)
    assert all(": " in mark["aria-label"] and "undefined" not in mark["aria-label"] for mark in marks)


@KINDS
def test_colours_of_a_chart_are_those_that_follow_the_page(kind: str, pages: dict[str, Path]) -> None:
    """Each colour of ink, line and ground has a CSS rule. The other colours are the models' palette, the same in light and dark, and map
    cells with their figures, which are legible in both."""
    from compress.report.pictures.drawing import INK, LINE, PAPER, SOFT
    from compress.report.pictures.plot_points import BASELINE_COLOUR, COLOURS

    page = read(pages, kind)
    used = {
        (name, attributes[name])
        for _, attributes, around in page.elements
        if "svg" in around
        for name in ("fill", "stroke")
        if attributes.get(name, "none") not in ("none", "transparent") and attributes.get("stroke-width") != "0"
    }
    text = pages[kind].read_text(encoding="utf-8")
    themed = {(name, value) for name, value in used if f'.chart [{name}="{value}"]' in text}
    assert {value for _, value in themed} >= {INK, LINE, PAPER, SOFT}
    maps = pages[kind].with_name("similarity.svg")
    cells = set(re.findall("#[0-9a-f]{6}", maps.read_text(encoding="utf-8"))) if maps.exists() else set()
    assert {value for _, value in used - themed} <= {*COLOURS, BASELINE_COLOUR} | cells


@KINDS
def test_a_command_has_its_button_that_shows_with_the_script(kind: str, pages: dict[str, Path]) -> None:
    buttons = read(pages, kind).of("button")
    assert buttons and all(attributes["class"] == "copy" and "hidden" in attributes for attributes in buttons)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_axe_finds_nothing(width: int, dark: bool, kind: str, pages: dict[str, Path], tab: Any) -> None:
    shown, axe = tab
    shown.open(pages[kind], width=width, dark=dark)
    assert shown.axe(axe) == []
    shown.run("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert shown.axe(axe) == []
    assert shown.run("document.documentElement.scrollWidth") == width
    assert shown.requests() == shown.errors() == []


@pytest.mark.slow
def test_committed_pages_are_no_wider_than_the_screen(tab: Any) -> None:
    shown, _ = tab
    for page in sorted(Path(__file__).parents[2].glob("reports/*/*.html")):
        for width in (1280, 768, 390):
            shown.open(page, width=width)
            assert shown.run("document.documentElement.scrollWidth") == width, (page.parent.name, width)


@pytest.mark.slow
@KINDS
def test_a_browser_shows_labels_in_the_pages_colours(kind: str, pages: dict[str, Path], tab: Any) -> None:
    """The words of every chart do not overlap in the browser's own font, and are bright on a dark ground."""
    shown, _ = tab
    shown.open(pages[kind], dark=True, scripts=False)
    shown.call("Emulation.setScriptExecutionDisabled", value=False)
    script = """[...document.querySelectorAll('.chart svg')].map(svg => {
      const frame = svg.getBoundingClientRect();
      const boxes = [...svg.querySelectorAll('text')].filter(word => word.textContent).map(word => word.getBoundingClientRect());
      const cut = boxes.filter(a => a.left < frame.left || a.right > frame.right + 0.5).length;
      const met = boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3));
      const ink = getComputedStyle(svg.querySelector('text')).fill.match(/\\d+/g).map(Number);
      return [boxes.length > 5, cut, met.length, Math.min(...ink) > 120];
    })"""
    charts = shown.run(script)
    assert charts
    assert charts == [[True, 0, 0, True]] * len(charts)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("scripts", [True, False])
def test_on_paper_everything_is_open(scripts: bool, kind: str, pages: dict[str, Path], tab: Any) -> None:
    shown, _ = tab
    shown.open(pages[kind], scripts=scripts)
    shown.call("Emulation.setScriptExecutionDisabled", value=False)
    shown.call("Emulation.setEmulatedMedia", media="print")
    if scripts:
        shown.run("dispatchEvent(new Event('beforeprint'))")
    closed = shown.run(
        "[...document.querySelectorAll('details > :not(summary, .filter)')].filter(part => !part.checkVisibility()"
        " || part.getBoundingClientRect().height < 2).length"
    )
    wide = shown.run("[...document.querySelectorAll('pre')].filter(part => part.scrollWidth > part.clientWidth).length")
    assert (closed, wide) == (0, 0)


@pytest.mark.slow
def test_long_names_of_recipes_are_no_wider_than_a_phone(fake: Callable[..., Result], tmp_path: Path, tab: Any) -> None:
    """More recipes than colours share checkboxes, so two of the longest names stand in one line."""
    names = [f"{number:x}_{'recipe' * 12}"[:64] for number in range(12)]
    runs = [(name, fake(run=name)) for name in names]
    results = [run.model_copy(update={"recipe": {**run.recipe, "name": name}}) for name, run in runs]
    write_report(results, tmp_path)
    shown, _ = tab
    shown.open(tmp_path / "report.html", width=390)
    assert shown.run("document.querySelectorAll('fieldset.legend label').length") == 6
    assert shown.run("document.documentElement.scrollWidth") == 390


@pytest.mark.slow
def test_the_name_of_a_row_stays_in_sight_on_a_phone(pages: dict[str, Path], tab: Any) -> None:
    shown, _ = tab
    shown.open(pages["report"], width=390)
    seen = shown.run("""(() => {
      const box = document.querySelector('.scroll');
      box.scrollLeft = 250;
      const cell = box.querySelector('tbody tr:nth-child(3) th');
      return [box.scrollLeft, cell.getBoundingClientRect().left - box.getBoundingClientRect().left, cell.innerText];
    })()""")
    scrolled, left, text = seen
    assert scrolled == 250
    assert 0 <= left <= 2
    assert "student" in text


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_lines_between_rows_are_whole_on_a_phone(
    dark: bool, kind: str, pages: dict[str, Path], tab: Any, tmp_path: Path
) -> None:
    """Each row's upper line is drawn in the first column, which stays in sight, as it is in the next."""
    shown, _ = tab
    shown.open(pages[kind], width=390, dark=dark)
    shown.screenshot(tmp_path / "page.png")
    picture = base64.b64encode((tmp_path / "page.png").read_bytes()).decode()
    script = """(async picture => {
      const image = new Image();
      image.src = `data:image/png;base64,${picture}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const colour = (x, y) => `rgb(${[...context.getImageData(x, y, 1, 1).data].slice(0, 3).join(', ')})`;
      const hasLine = cell => {
        const {left, top} = cell.getBoundingClientRect(), line = getComputedStyle(cell).borderTopColor;
        return [-1, 0, 1].some(y => colour(Math.round(left) + 3, Math.round(top + scrollY) + y) === line);
      };
      const rows = [...document.querySelectorAll('.scroll tr')].filter(row => row.checkVisibility());
      return rows.map(row => [...row.cells].filter(cell => cell.checkVisibility()).slice(0, 2).map(hasLine));
    })"""
    lines = shown.run(f"{script}({picture!r})")
    assert len(lines) > 3
    assert lines == [[True, True]] * len(lines)
