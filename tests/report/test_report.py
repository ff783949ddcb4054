"""Where a report is written and what it replaces there; the tables of the terminal and of a README."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from compress.cli.runs import report as report_command
from compress.errors import CompressError
from compress.report import markdown_table, render, summary_table, write_report
from compress.results import Result, read_result, write_result


def test_a_report_that_is_there_is_kept_and_other_results_replace_it(
    fake: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(render, "html_report", lambda page, tasks: drawn.append(page.title) or "page")
    monkeypatch.setattr(render, "plot", lambda tasks: "plot")
    result = fake()
    write_report([result], tmp_path)
    stages = tuple(stage.model_copy(update={"cached": True}) for stage in result.stages)
    later = result.model_copy(update={"created": "2026-01-01T00:00:00+00:00", "stages": stages})
    write_report([later], tmp_path)
    assert len(drawn) == 1, "a run that was cached throughout is drawn again"
    assert read_result(tmp_path) == later
    write_report([result.model_copy(update={"command": "another"})], tmp_path)
    assert len(drawn) == 2
    (tmp_path / "plot.svg").unlink()
    write_report([result.model_copy(update={"command": "another"})], tmp_path)
    assert len(drawn) == 3
    assert (tmp_path / "plot.svg").read_text() == "plot"


@pytest.mark.parametrize("name", ["plot.svg", "report.html"])
def test_a_damaged_page_is_drawn_again(fake: Callable[..., Result], tmp_path: Path, name: str) -> None:
    write_report([fake()], tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:2000])
    write_report([fake()], tmp_path)
    assert (tmp_path / name).read_bytes() == whole


def test_one_result_is_written_as_itself(
    fake: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "html_report", lambda page, tasks: "page")
    monkeypatch.setattr(render, "plot", lambda tasks: "plot")
    paths = write_report([fake()], tmp_path / "new" / "folder")
    assert paths[-1].name == "result.json"
    assert read_result(paths[-1]) == fake()


def test_a_folder_that_cannot_be_written_is_named(fake: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CompressError, match=r"file: cannot be written: .*; choose another folder"):
        write_report([fake()], tmp_path / "file")


def test_the_readme_table_has_the_final_rows_of_the_terminal_table(realistic: list[Result]) -> None:
    console = Console(width=90, record=True, force_terminal=False)
    console.print(summary_table(realistic))
    terminal, readme = console.export_text(), markdown_table(realistic)
    of_one_task = markdown_table([result for result in realistic if result.task.title == "MNLI"])
    for text in (terminal, of_one_task):
        for wanted in (
            "distilbert",
            "student int8",
            "−1.03 (−2.41 to +0.23)",
            "0.980 (5.9×)",
        ):
            assert wanted in text
        assert "MNLI: train has 46,165 of 392,702 rows: a subset" in text
    assert "MRPC: mean of" in terminal
    assert "p50 1 × 32, ms" in terminal
    assert "student fp32" in terminal
    assert "88.25 ± 0.35" in terminal
    assert "student fp32" not in of_one_task and "student fp32" not in readme
    assert "MNLI: train has 46,165 of 392,702 rows: a subset" in readme
    assert "1 or 3 seeds" in readme


def test_terminal_text_is_not_markup(fake: Callable[..., Result]) -> None:
    result = fake()
    task = result.task.model_copy(update={"title": "[red]x[/red] [/nonsense]"})
    console = Console(width=150, record=True, force_terminal=False)
    console.print(summary_table([result.model_copy(update={"task": task})]))
    assert "[red]x[/red] [/nonsense]" in console.export_text()


def test_reporting_imports_no_torch() -> None:
    code = (
        "import sys; from pathlib import Path; from compress.report import collect, summary_table, write_report;"
        "from compress.report import render, page; from compress.cli import runs, screen;"
        "print([m for m in ('torch', 'transformers', 'altair', 'pandas', 'scipy', 'compress.pipeline') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_folder_of_somebody_elses_is_refused_before_intervals_are_drawn(
    fake: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, own = tmp_path / "run", tmp_path / "own"
    run.mkdir()
    own.mkdir()
    write_result(fake(), run)
    (own / "report.md").write_text("mine", encoding="utf-8")
    monkeypatch.setattr("compress.report.tasks_of", lambda *_: pytest.fail("the results were grouped first"))
    with pytest.raises(CompressError, match=r"report\.md: is no report of this tool's"):
        report_command([run], own)


def test_where_the_teacher_has_no_times_the_chart_by_time_says_so(fake: Callable[..., Result], tmp_path: Path) -> None:
    whole = fake()
    untimed = whole.models[0].model_copy(update={"onnx": None, "torch_eager": None})
    written = write_report([whole.model_copy(update={"models": (untimed, *whole.models[1:])})], tmp_path)
    assert "sizes.svg" in {path.name for path in written}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("score against file size") == 1
    assert "teacher fp32 was not timed so." in page
