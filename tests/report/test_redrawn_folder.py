"""A report written into another report's folder replaces that report, but never a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compress.errors import CompressError
from compress.report import collect, write_report
from compress.results import MODELS, PREDICTIONS, RESULT, SEVERAL, Result, read_result, write_result

Make = Callable[..., Result]


def test_runs_that_were_left_out_do_not_come_back(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    first, second = (run_directory(fake(seed=seed)) for seed in range(2))
    runs, out = tmp_path / "runs", tmp_path / "out"
    for results, data in (([first, second], SEVERAL), ([first], RESULT), ([first, second], SEVERAL)):
        write_report(results, out, folders=[runs])
        assert collect([out]) == results
        assert [name for name in (RESULT, SEVERAL) if (out / name).exists()] == [data]


@pytest.mark.parametrize("kept", [MODELS, PREDICTIONS])
def test_a_runs_own_folder_keeps_its_files(fake: Make, run_directory: Make, tmp_path: Path, kept: str) -> None:
    result = run_directory(fake())
    own = tmp_path / "runs" / result.run
    (own / kept).touch()
    (own / SEVERAL).write_text("a file of the user's")
    write_report([result], own, folders=[own])
    assert (own / SEVERAL).read_text() == "a file of the user's"
    assert read_result(own) == result


def test_the_run_of_another_machine_is_not_replaced_by_its_namesake(fake: Make, tmp_path: Path) -> None:
    here = fake()
    there = here.model_copy(update={"machine": here.machine.model_copy(update={"cpu": "Another CPU"})})
    write_result(here, tmp_path)
    (tmp_path / MODELS).write_text("{}")
    with pytest.raises(CompressError, match="is the folder of another run; choose another folder for the report"):
        write_report([there], tmp_path)
    assert read_result(tmp_path) == here
