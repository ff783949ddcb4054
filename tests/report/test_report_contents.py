"""The contents of a report's files: that they fetch nothing, say what was run, and are reproducible."""

from __future__ import annotations

import base64
import hashlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest

from compress.report import collect, markdown_table, render, write_report
from compress.report.page import page_of, tasks_of
from compress.report.text.markdown import in_html
from compress.results import Result

NASTY = "<script>alert(1)</script>|*`_[x](http://evil.example)"


class Elements(HTMLParser):
    """A parser that collects tags with their attributes, and the text outside script and style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.words.append(data)
        elif self.inside[-1] == "script":
            self.scripts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, fake: Callable[..., Result]) -> Path:
    """Write one report for all tests: two recipes on SST-2, and one on MNLI with a subset of its training rows."""
    out = tmp_path_factory.mktemp("report")
    paths = write_report([fake(), fake("int8"), fake(task="mnli")], out)
    assert [path.name for path in paths] == ["report.md", "report.html", "plot.svg", "sizes.svg", "results.json"]
    return out


@pytest.fixture(scope="module")
def html(report: Path) -> Elements:
    return Elements((report / "report.html").read_text(encoding="utf-8"))


def test_the_results_beside_the_report_can_be_read_again(report: Path) -> None:
    assert [result.task.name for result in collect([report])] == ["sst2", "sst2", "mnli"]
    assert {path.name for path in report.iterdir()} == {
        "report.md",
        "report.html",
        "plot.svg",
        "sizes.svg",
        "results.json",
    }


def test_the_page_asks_nothing_of_the_network(html: Elements) -> None:
    for _, attributes in html.tags:
        for name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
            assert not re.match(r"\s*(https?:)?//", attributes.get(name) or "")
    assert not html.of("link")
    assert not html.of("img")
    assert "fetch(" not in "".join(html.scripts)


def test_the_page_runs_one_script_and_no_other(html: Elements) -> None:
    policy = [
        attributes["content"]
        for attributes in html.of("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (script,) = html.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == [f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"]


def test_styles_ask_nothing_of_the_network(report: Path) -> None:
    page = (report / "report.html").read_text(encoding="utf-8")
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert styles
    assert not any(re.search(r"url\(|@import|https?:", style) for style in styles)


def test_tables_can_be_read_by_ear(html: Elements) -> None:
    assert len(html.of("caption")) == len(html.of("table")) > 4
    assert all(attributes.get("scope") in ("col", "row") for attributes in html.of("th"))
    charts = [attributes for attributes in html.of("div") if attributes.get("role") == "img"]
    assert len(charts) == 4, "by time and by size, of two tasks"
    assert all("student int8" in (attributes["aria-label"] or "") for attributes in charts)
    regions = [attributes for attributes in html.of("div") if attributes.get("role") == "region"]
    assert all(attributes.get("tabindex") == "0" and attributes.get("aria-label") for attributes in regions)
    assert html.of("html") == [{"lang": "en"}]


def test_light_and_dark_and_small_screens(report: Path, html: Elements) -> None:
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in page
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in html.of("meta")


@pytest.mark.parametrize("name", ["report.md", "report.html"])
def test_a_reader_finds_what_was_run(report: Path, html: Elements, name: str) -> None:
    text = (report / name).read_text(encoding="utf-8") if name.endswith("md") else " ".join(html.words)
    for wanted in (
        "compress run distilbert --task sst2",
        "AMD EPYC 9R14",
        "avx512_vnni",
        "onnxruntime 1.31.0",
        "train 65,349, tuning 2,000, dev 872",
        "train has 46,165 of 392,702 rows: a subset",
        "not distinguishable",
        "A/A: measured again",
        "PyTorch eager",
        "name: distilbert",
        "6 min 52 s",
        "3.4e-06",
        "int8 gathers 3",
    ):
        assert wanted in text, wanted


def test_a_subset_is_said_in_the_section_of_its_numbers(report: Path) -> None:
    sections = (report / "report.md").read_text(encoding="utf-8").split("\n## ")
    (mnli,) = [section for section in sections if section.startswith("MNLI (subset)\n")]
    (sst2,) = [section for section in sections if section.startswith("SST-2\n")]
    assert "Note: train has 46,165 of 392,702 rows: a subset" in mnli
    assert "subset" not in sst2
    assert "a subset" in (report / "plot.svg").read_text(encoding="utf-8")


def test_markdown_tables_are_rectangular(report: Path) -> None:
    tables = re.findall(r"(?:^\|.*\|\n)+", (report / "report.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(tables) > 4
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_the_plot_is_a_picture_on_white_with_its_labels(report: Path) -> None:
    text = (report / "plot.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    for label in (
        "teacher fp32, 91.1 MB",
        "distilbert, student int8, 17.8 MB",
        "int8, teacher int8, 23.4 MB",
        "SST-2",
        "MNLI (subset)",
    ):
        assert label in words
    assert 'fill="#ffffff"' in text
    assert not re.search(r"(?:href|src)=\"https?:", text)


def test_the_same_results_give_the_same_bytes(report: Path, tmp_path: Path) -> None:
    write_report(collect([report]), tmp_path)
    for name in ("report.md", "report.html", "plot.svg", "sizes.svg", "results.json"):
        assert (tmp_path / name).read_bytes() == (report / name).read_bytes(), name


def test_the_speed_of_a_stage_is_in_its_row(
    fake: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "html_report", lambda page, tasks: "page")
    monkeypatch.setattr(render, "plot", lambda tasks: "plot")
    result = fake()
    speed = {"tokens_per_second": 12345.6, "model_flops_per_second": 1.2345e10, "utilisation": 0.4123}
    stages = (result.stages[0].model_copy(update={"info": {"steps": 6129, **speed}}), *result.stages[1:])
    write_report([result.model_copy(update={"stages": stages})], tmp_path)
    info_text = "steps 6,129, tokens per second 12,346, model flops per second 1.234e+10, utilisation 0.4123"
    assert info_text in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_names_with_markup_stay_text(fake: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    result = fake()
    data = result.task.data.model_copy(update={"notes": (f"a subset {NASTY}",)})
    task = result.task.model_copy(update={"title": NASTY, "labels": (NASTY, "b"), "data": data})
    changes = {"task": task, "command": f"run ``` {NASTY}", "recipe": {"name": NASTY, "description": f"``` {NASTY}"}}
    tasks = tasks_of([result.model_copy(update={**changes, "run": NASTY, "teacher": NASTY})])
    page = page_of(tasks)
    html = Elements(render.html_report(page, tasks))
    assert len(html.of("script")) == 1
    assert "".join(html.words).count("<script>alert(1)</script>") > 5
    assert not any("evil.example" in (value or "") for attributes in html.of("a") for value in attributes.values())
    report = render.markdown_report(page, "digest")
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", report, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    assert not re.search(r"(?<!\\)\]\(http", outside)
    assert outside.count("&lt;script&gt;alert(1)&lt;/script&gt;\\|\\*\\`\\_\\[x\\]") > 5
    assert ElementTree.fromstring(render.plot(tasks)) is not None


def test_summaries_of_the_markdown_page_are_html() -> None:
    """Markdown is not interpreted in them: its escapes would be shown."""
    assert in_html("int8 [B]: *a* <b> & c") == "int8 [B]: *a* &lt;b&gt; &amp; c"
    templates = resources.files("compress.report").joinpath("templates").iterdir()
    filters = [
        re.findall(r"<summary>\{\{.*?\| (\w+) \}\}", each.read_text())
        for each in templates
        if each.name.endswith(".md.j2")
    ]
    assert sum(map(len, filters)) > 5 and {name for names in filters for name in names} == {"html"}


def test_machines_that_differ_are_said_before_any_number(
    fake: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = fake()
    other = fake("int8", machine=one.machine.model_copy(update={"cpu": "Intel Xeon 8488C"}))
    tasks = tasks_of([one, other])
    for text in (render.markdown_report(page_of(tasks), ""), render.html_report(page_of(tasks), tasks)):
        warning = text.index("Latencies of different machines cannot be compared")
        assert warning < text.index("89.90")
    assert "Latencies of different machines" in markdown_table([one, other])
