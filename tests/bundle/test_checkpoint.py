"""Exporting a run's checkpoints from the store, by stage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bundle_making import Run, make_run

from compress.bundle import ship, take_checkpoint
from compress.cli.shipping import checkpoint
from compress.errors import CompressError


@pytest.fixture
def run(tmp_path: Path) -> Run:
    toy_run = make_run(tmp_path / "made")
    (toy_run.folder / "checkpoints.json").write_text(json.dumps({"teacher": "c" * 32, "student": "c" * 32}))
    return toy_run


def test_it_is_the_stages_files_without_ours(run: Run, tmp_path: Path) -> None:
    out = take_checkpoint(run.folder, tmp_path / "out", store=run.store, name="teacher")
    names = {path.name for path in run.checkpoint.iterdir()} - {"manifest.json"}
    assert {path.name for path in out.iterdir()} == names
    assert all((out / name).read_bytes() == (run.checkpoint / name).read_bytes() for name in names)


def test_the_last_one_made_is_the_default(run: Run, tmp_path: Path) -> None:
    (run.folder / "checkpoints.json").write_text(json.dumps({"teacher": "d" * 32, "student": "c" * 32}))
    assert (take_checkpoint(run.folder, tmp_path / "out", store=run.store) / "config.json").exists()


def test_what_is_wrong_is_said_and_nothing_written(run: Run, tmp_path: Path) -> None:
    def fails(*parts: str, folder: Path = run.folder, name: str | None = None) -> None:
        with pytest.raises(CompressError) as failed:
            take_checkpoint(folder, tmp_path / "out", store=run.store, name=name)
        assert all(part in str(failed.value) for part in parts), str(failed.value)
        assert not (tmp_path / "out").exists()

    fails("no checkpoint `techer`", "did you mean `teacher`?", name="techer")
    fails("checkpoints.json is missing", "compress run", folder=tmp_path)
    fails("is a folder of runs, not a run; name one of them", folder=run.folder.parent)
    (run.folder / "checkpoints.json").write_text(json.dumps({"teacher": "../elsewhere"}))
    fails("inside the store")
    (run.folder / "checkpoints.json").write_text(json.dumps({"teacher": "c" * 32}))
    shutil.rmtree(run.checkpoint)
    fails("is gone", "compress run")


def test_a_folder_with_files_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CompressError, match="found files in it"):
        take_checkpoint(run.folder, tmp_path, store=run.store)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_the_command_says_of_which_stage_it_is_where_nobody_named_one(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint(run.folder, tmp_path / "out", store=run.store)
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'out'}\n"
    assert "stage student" in printed.err and "--stage teacher" in printed.err
    checkpoint(run.folder, tmp_path / "named", stage="teacher", store=run.store)
    assert capsys.readouterr().err == ""


def test_a_report_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("[]")
    with pytest.raises(CompressError, match=r"is a report.*--from"):
        ship(tmp_path, tmp_path / "out", store=tmp_path)
