"""`compress search` as users call it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from default_suite import slow
from recipe_runs import TASK, TEACHER, compress

from compress.machine import training_precision

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
    words = ("int8", *LIMITS, "--try", "quantize.method=[dynamic, static]", "--trials", "3")  # of two combinations
    first = _search(place, *words)
    assert first.returncode == 0, first.stderr
    document = json.loads((place / "out" / "search" / "search.json").read_text())
    assert sorted(trial["point"]["quantize.method"] for trial in document["trials"]) == ["dynamic", "static"]
    assert "every combination was tried: 2" in first.stdout
    assert document["choice"]["missed"] == []
    assert document["ship"] in first.stdout
    assert (place / document["ship"].split()[2] / "result.json").is_file()
    kept = {path.name for path in (place / "out" / ".store").iterdir()}
    again = _search(place, *words)
    assert again.stdout == first.stdout
    assert {path.name for path in (place / "out" / ".store").iterdir()} == kept


def test_what_is_too_large_by_its_parameters_is_refused_before_any_training(place: Path) -> None:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "small")
    done = compress("search", "int8", "distilbert", "--max-size-mb", "0.001", "--trials", "2", *own, cwd=place)
    assert done.returncode == 2
    assert "no trial was measured; trial 0 was refused: --max-size-mb" in done.stderr
    assert "; trial 1 was refused: --max-size-mb" in done.stderr  # it has another size, so another reason
    assert not (place / "small").exists()


@pytest.mark.parametrize("jobs", ["1", *slow("2")])
def test_a_search_that_measured_nothing_leaves_its_folder_to_the_corrected_command(place: Path, jobs: str) -> None:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--trials", "1", "-j", jobs, "-o", "corrected")
    for limit in ("0.001", "0.002"):
        done = compress("search", "int8", "--max-size-mb", limit, *own, cwd=place)
        assert done.returncode == 2
        assert f"trial 0 was refused: --max-size-mb: expected at most {limit}" in done.stderr
        assert not (place / "corrected").exists()


def test_students_vary_for_each_recipe_that_has_one_whatever_its_stages_are_called(place: Path) -> None:
    """The distill stages of minilm have names, and prune-distil's trains no student."""
    axes = ("--try", "student=[distil-1l, tiny-2l]", "--trials", "9")
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "students")
    done = compress("search", "minilm", "prune-distil", "--max-size-mb", "0.001", *axes, *own, cwd=place)
    assert "no trial was measured" in done.stderr
    tried = [
        line.rpartition("recipe=")[2].strip()
        for line in done.stderr.splitlines()
        if "trial " in line and "recipe=" in line
    ]
    assert {"minilm student=distil-1l", "minilm student=tiny-2l", "prune-distil"} == set(tried)


@pytest.mark.slow
def test_what_is_too_slow_by_its_shape_is_refused_before_any_training(place: Path) -> None:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "slow")
    done = _call(place, "int8", "--max-latency-ms", "0.000001", "--trials", "1", *own)
    assert done.returncode == 2
    match = re.search(r"no trial was measured; .* found ([\d.e-]+) ms by its shape, untrained", done.stderr)
    assert match and float(match[1]) > 0.000001
    assert not (place / "slow").exists()


SPACE = (
    "int8",
    *LIMITS,
    "--try",
    "quantize.method=[dynamic, static]",
    "--try",
    "finetune.max_steps=[3, 4]",
    "--trials",
    "4",
)


def _begin(place: Path, out: str, *words: str) -> psutil.Popen:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--threads", "1", "-o", out)
    command = [sys.executable, "-m", "compress", "search", *SPACE, *words, *own]
    return psutil.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _until(process: psutil.Popen, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def _stages(folder: Path) -> dict[str, int]:
    """Return finished stage -> the time its manifest was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in (folder / ".store").glob("[0-9a-f]*/manifest.json")}


def _summary(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "search" / "search.json").read_text())
    models = [{k: v for k, v in model.items() if k not in ("command", "run")} for model in document["front"]]
    return {"trials": document["trials"], "front": models, "choice": document["choice"]}


@pytest.fixture(scope="module")
def unkilled(place: Path) -> dict[str, Any]:
    assert _begin(place, "unkilled").wait(300) == 0
    return _summary(place / "unkilled")


@pytest.mark.slow
def test_a_search_that_is_killed_twice_ends_as_one_that_was_not(place: Path, unkilled: dict[str, Any]) -> None:
    folder, kept = place / "killed", dict[str, int]()
    for stages in (2, 4):
        process = _begin(place, "killed")
        _until(process, lambda stages=stages: len(_stages(folder)) >= stages)
        process.kill()
        process.wait()
        kept = _stages(folder) | kept
    assert len(kept) >= 4
    assert _begin(place, "killed").wait(300) == 0
    assert _summary(folder) == unkilled
    assert kept.items() <= _stages(folder).items()  # none was made again


@pytest.mark.slow
def test_processes_that_share_a_search_end_with_ctrl_c_and_finish_it_together(
    place: Path, unkilled: dict[str, Any]
) -> None:
    folder = place / "shared"
    process = _begin(place, "shared", "-j", "2")
    _until(process, lambda: len(_stages(folder)) >= 1)
    helpers = process.children(recursive=True)
    assert helpers
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert not psutil.wait_procs(helpers, 30)[1]
    kept = _stages(folder)
    assert _begin(place, "shared", "-j", "2").wait(300) == 0
    assert kept.items() <= _stages(folder).items()
    # All four combinations are tried, in an order that varies with two processes.
    trials = [sorted((t["score"], t["size_mb"]) for t in each["trials"]) for each in (_summary(folder), unkilled)]
    assert trials[0] == trials[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "named"), [(("--set", "finetune.epochs=2"), "set is"), (("--precision", "{other}"), "precision is")]
)
def test_a_folder_of_another_search_is_refused(
    place: Path, unkilled: dict[str, Any], words: tuple[str, ...], named: str
) -> None:
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "unkilled")
    other = "fp32" if training_precision() == "bf16" else "bf16"  # not this machine's default
    done = _call(place, *SPACE, *(word.format(other=other) for word in words), *own)
    assert done.returncode == 2
    assert f"holds another search: {named}" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("int8",), "at least one limit"),
        (("int9", *LIMITS), "int9"),
        (("int8", *LIMITS, "--try", "quantize.method=[dynamik]"), "--try quantize.method: "),
        (("int8", *LIMITS, "--try", "distill.epochs=[1]"), "distill"),
        (("int8", *LIMITS, "--try", "epochs"), "expected NAME="),
        (
            ("int8", *LIMITS, *("--try", "quantize.method=[static]") * 2),
            "--try quantize.method: expected one list of values, found 2",
        ),
        (
            ("distilbert", *LIMITS, "--try", "distill.epochs=[1, 2]", "--set", "distill.epochs=3"),
            "--try distill.epochs: --set distill.epochs gives it too; leave one of the two out",
        ),
        (
            ("tinybert", *LIMITS, "--try", "prediction.epochs=[1, 2]", "--set", "stages[5].distill.epochs=3"),
            "--try prediction.epochs: --set stages[5].distill.epochs gives it too; leave one of the two out",
        ),
        (
            ("distilbert", *LIMITS, "--try", "distill.losses[0].weight=[1, 2]", "--set", "distill.losses.0.weight=3"),
            "--try distill.losses[0].weight: --set distill.losses.0.weight gives it too; leave one of the two out",
        ),
        (("int8", *LIMITS, "--try", "recipe=[distilbert]"), "--try recipe: name the recipes before the options"),
        (("int8", *LIMITS, "--tuning", "nowhere.csv"), "nowhere.csv"),
        (("distilbert", *LIMITS, "--try", "student=[distilbert-6l]"), "distilbert-6l"),
        (("prune-distil", *LIMITS, "--try", "student=[tiny-2l]"), "--try student: none of prune-distil has a student"),
    ],
)
def test_wrong_input_is_refused_and_nothing_written(place: Path, words: tuple[str, ...], message: str) -> None:
    done = compress("search", *words, "--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "refused", cwd=place)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "refused").exists()


def test_values_that_do_not_fit_each_other_are_named_by_the_options_that_gave_them(place: Path) -> None:
    budgets = ("--try", "prune.flops=[0.5]", "--try", "prune.size_mb=[0.2]")
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "-o", "budgets")
    done = compress("search", "prune-int8", *LIMITS, *budgets, *own, cwd=place)
    assert done.returncode == 2
    assert "trial 0 was refused: --try prune.flops: expected one budget" in done.stderr


@pytest.mark.slow
def test_workers_that_ray_starts_share_a_search(place: Path, unkilled: dict[str, Any]) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'ray>=2.50'")
    example = Path(__file__).parents[2] / "examples" / "search_on_ray.py"
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--threads", "1", "-o", "ray")
    command = [sys.executable, str(example), "--workers", "2", "--", *SPACE, *own]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert "choice: trial" in done.stdout
    both = [sorted((t["score"], t["size_mb"]) for t in each["trials"]) for each in (_summary(place / "ray"), unkilled)]
    assert both[0] == both[1]
    assert len(_stages(place / "ray")) == len(_stages(place / "unkilled"))  # none was made twice
