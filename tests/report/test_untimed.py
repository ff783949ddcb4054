"""Reports of runs whose latency was not measured, or only in part."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from compress.report import markdown_table, summary_table, write_report
from compress.results import Result


def untimed(result: Result) -> Result:
    """Return the same run as without `bench`."""
    models = tuple(model.model_copy(update={"onnx": None, "torch_eager": None}) for model in result.models)
    settings = {**result.settings, "bench": None}
    return result.model_copy(update={"models": models, "noise": (), "settings": settings})


@pytest.fixture
def report(fake: Callable[..., Result], tmp_path: Path) -> Path:
    write_report([untimed(fake()), untimed(fake(seed=1)), untimed(fake("int8", "mnli"))], tmp_path)
    return tmp_path


def test_pages_say_so_and_show_no_column_for_it(report: Path) -> None:
    for name in ("report.md", "report.html"):
        text = (report / name).read_text(encoding="utf-8")
        text = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
        assert "Latency was not measured." in text
        assert "−1.03 (" in text and "spread of the seeds and their own intervals" in text
        for word in ("p50", "A/A", "latencies", "ms p90", "its speed", "PyTorch eager", "Latency of every model"):
            assert word not in text, word


def test_the_plot_is_over_file_size(report: Path) -> None:
    root = ElementTree.parse(report / "plot.svg").getroot()
    words = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"File size, MB", "distilbert, student int8, 17.8 MB"} <= words


def test_tables_have_no_column_for_it(fake: Callable[..., Result]) -> None:
    results = [untimed(fake()), untimed(fake("int8"))]
    console = Console(width=90, record=True, force_terminal=False)
    console.print(summary_table(results))
    for text in (console.export_text(), markdown_table(results)):
        assert "student int8" in text
        assert "p50" not in text


def test_runs_with_and_without_it_stand_in_one_report(fake: Callable[..., Result], tmp_path: Path) -> None:
    for name, results in {"a": [fake(), untimed(fake("int8"))], "b": [untimed(fake()), fake("int8")]}.items():
        write_report(results, tmp_path / name)
        text = (tmp_path / name / "report.md").read_text(encoding="utf-8")
        assert "teacher int8" in text
        assert "Latency was not measured." not in text
