"""Files that are not a command's own: it neither replaces nor deletes them, and says so before any work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recipe_runs import TEACHER
from refusals import Cli, refused

BRIEF = ("--threads", "1", "--set", "finetune.max_steps=1", "--set", "quantize.method=dynamic")
QUICK = ("--teacher", "bert-mini", *BRIEF)


@pytest.mark.end_to_end
def test_what_is_not_a_runs_own_stays_and_reports_replace_nothing_else(
    cli: Cli, tmp_path: Path, task_file: Path
) -> None:
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    run = (
        "run",
        "int8",
        "--task",
        task_file,
        "--teacher",
        tmp_path / "tiny.yaml",
        *BRIEF,
        "--out",
        tmp_path / "runs",
        "--quiet",
    )
    assert cli(*run, "--no-bench").code == 0
    (folder,) = (tmp_path / "runs").glob("int8-*")
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("mine")
    assert cli(*run, "--bench-runs", "1").code == 0  # the run is made again, with its latency
    assert json.loads((folder / "result.json").read_text())["models"][0]["onnx"]
    assert (folder / "notes" / "mine.txt").read_text() == "mine"

    other = folder.with_name("other")
    shutil.copytree(folder, other)
    (other / "result.json").write_text((folder / "result.json").read_text().replace(folder.name, "other"))
    before = (other / "result.json").read_bytes()
    assert "is the folder of another run" in refused(cli, "report", folder, "-o", other)
    assert (other / "result.json").read_bytes() == before
    assert cli("report", folder, "-o", folder).code == 0

    (folder / "result.json").unlink()  # as after a kill between the old run's end and the new one's
    (folder / "report.md").write_text("my own words")
    assert "is no report of this tool's" in cli(*run, "--bench-runs", "1").err
    assert (folder / "report.md").read_text() == "my own words"
    assert (folder / "notes" / "mine.txt").read_text() == "mine"
    (folder / "report.md").unlink()
    assert cli(*run, "--bench-runs", "1").code == 0  # its own pages are written again beside its own result
    assert (folder / "report.md").exists()
    results = tmp_path / "results"
    results.mkdir()
    shutil.copy(folder / "result.json", results)
    assert cli("report", results, "-o", results).code == 0
    assert (results / "report.md").exists()


@pytest.mark.parametrize(
    "name",
    [
        "report.md",
        "report.html",
        "plot.svg",
        "sizes.svg",
        "sensitivity.svg",
        "pruned.svg",
        "reliability.svg",
        "similarity.svg",
        "result.json",
        "results.json",
    ],
)
def test_a_report_replaces_no_file_of_others(cli: Cli, tmp_path: Path, task_file: Path, name: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / name).write_text("my thesis")
    line = refused(cli, "run", "int8", "--task", task_file, *QUICK, "--out", tmp_path / "runs", "--report", own)
    assert f"{own / name}: is no report of this tool's" in line
    assert [path.name for path in own.iterdir()] == [name]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["ablation.md", "ablation.html", "ablation.svg", "ablation.json"])
def test_an_ablation_replaces_no_file_of_others(cli: Cli, tmp_path: Path, task_file: Path, name: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / name).write_text("my thesis")
    line = refused(cli, "ablate", "distilbert", "--task", task_file, "--out", tmp_path / "runs", "--report", own)
    assert f"{own / name}: is no ablation of this tool's" in line
    assert (own / name).read_text() == "my thesis"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("place", ["file", "file/x", "link", "/proc/x"])
def test_where_nothing_can_be_written_is_told_before_any_work(
    cli: Cli, tmp_path: Path, task_file: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("link")
    (tmp_path / "text.txt").write_text("a film .\n")
    to = tmp_path / place
    assert f"error: {to}: cannot be written: " in refused(
        cli, "run", "int8", "--task", task_file, "--out", tmp_path / "runs", "--report", to
    )
    assert not (tmp_path / "runs").exists()
    if place != "file":  # `vocab` has another message for an existing file
        assert f"error: {to}: cannot be written: " in refused(cli, "vocab", "--corpus", tmp_path / "text.txt", "-o", to)
