"""`compress search` as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from recipe_runs import TASK, TEACHER

pytest.importorskip("optuna")
LIMITS = ("--max-size-mb", "5", "--min-score", "-100")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "tiny-task.yaml").write_text(TASK)
    return folder


def _call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compress", "search", *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300)


def _search(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--threads", "1", "-o", "out")
    return _call(place, *(words or ("int8", *LIMITS)), *own)


@pytest.mark.slow
def test_a_search_ends_with_a_front_a_choice_and_the_command_that_ships_it(place: Path) -> None:
    words = ("int8", *LIMITS, "--try", "quantize.method=[dynamic, static]", "--trials", "3")
    first = _search(place, *words)
    assert first.returncode == 0, first.stderr
    document = json.loads((place / "out" / "search" / "search.json").read_text())
    assert [trial["number"] for trial in document["trials"]] == [0, 1, 2]
    assert document["choice"]["missed"] == []
    assert document["ship"] in first.stdout
    assert (place / document["ship"].split()[2] / "result.json").is_file()
    kept = {path.name for path in (place / "out" / ".store").iterdir()}
    again = _search(place, *words)
    assert again.stdout == first.stdout
    assert {path.name for path in (place / "out" / ".store").iterdir()} == kept


@pytest.mark.slow
def test_what_is_too_large_by_its_parameters_is_refused_before_any_training(place: Path) -> None:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "small")
    found = _call(place, "int8", "--max-size-mb", "0.001", "--trials", "1", *own)
    assert found.returncode == 2
    assert "no trial was measured" in found.stderr
    assert not (place / "small" / ".store").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("int8",), "at least one limit"),
        (("int9", *LIMITS), "int9"),
        (("int8", *LIMITS, "--try", "quantize.method=[dynamik]"), "dynamik"),
        (("int8", *LIMITS, "--try", "distill.epochs=[1]"), "distill"),
        (("int8", *LIMITS, "--try", "epochs"), "expected NAME="),
    ],
)
def test_wrong_input_is_refused_and_nothing_written(place: Path, words: tuple[str, ...], message: str) -> None:
    found = _call(place, *words, "--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "refused")
    assert found.returncode == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr
    assert not (place / "refused").exists()
