"""Training curves: read from the run's log, thinned, in words and pictures; none without a log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow

from compress.report import collect, write_report
from compress.report.page import page_of, tasks_of
from compress.report.pictures.drawing import svg
from compress.report.sections import curves
from compress.results import LOG, Result

from ..support.svg_labels import faults


def lines(model: str, steps: int, *, every: int = 100) -> Iterable[str]:
    """Yield log lines: a loss that halves at each step from 1024, a constant one, and a score at every `every` steps."""
    for step in range(1, steps + 1):
        losses = {"soft_target": 1024 * 0.5 ** min(step, 20), "hard_label": 0.25}
        score = 80 + step / 100 if step % every == 0 else None
        yield json.dumps({"model": model, "step": step, "losses": losses, "tuning": score})


@pytest.fixture
def logged(fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path) -> Callable[..., Any]:
    """Return a function that writes a run for each log and returns the report's tasks and the folder of the runs."""

    def write(*logs: Iterable[str]) -> tuple[list[Any], Path]:
        folder = tmp_path / "runs"
        for seed, log in enumerate(logs):
            run = run_directory(fake(seed=seed))
            (folder / run.run / LOG).write_text("".join(f"{line}\n" for line in log), encoding="utf-8")
        return tasks_of(collect([folder])), folder

    return write


def test_each_term_and_the_score_by_step(logged: Callable[..., Any]) -> None:
    (task,), folder = logged(lines("teacher", 4, every=2))
    ((training,),) = [recipe_curves.trainings for recipe_curves in curves.curves_of(task, [folder])]
    assert training.losses == {
        "soft_target": [(1, 512.0), (2, 256.0), (3, 128.0), (4, 64.0)],
        "hard_label": [(step, 0.25) for step in (1, 2, 3, 4)],
    }
    assert training.tuning == [(2, 80.02), (4, 80.04)]


def test_a_long_line_is_thinned_to_means_and_keeps_its_last_step(logged: Callable[..., Any]) -> None:
    (task,), folder = logged(lines("teacher", 1000))
    ((training,),) = [recipe_curves.trainings for recipe_curves in curves.curves_of(task, [folder])]
    soft = training.losses["soft_target"]
    assert 100 < len(soft) <= 120
    assert soft[-1][0] == 1000
    assert soft[0] == (9, pytest.approx(sum(1024 * 0.5**step for step in range(1, 10)) / 9))
    assert len(training.tuning) == 10


def test_cut_and_foreign_lines_are_passed_over(logged: Callable[..., Any]) -> None:
    broken = [
        '{"model": "teacher", "st',
        "[]",
        "null",
        '{"model": "teacher", "step": 2, "losses": {"hard_label": "x"}}',
    ]
    broken += ['{"model": "teacher", "step": 3, "losses": {"hard_label": NaN}, "tuning": Infinity}', "[" * 100_000]
    (task,), folder = logged([*lines("teacher", 1), *broken])
    ((training,),) = [recipe_curves.trainings for recipe_curves in curves.curves_of(task, [folder])]
    assert training.losses == {"soft_target": [(1, 512.0)], "hard_label": [(1, 0.25)]}
    assert training.tuning == []


def test_in_words_each_training_of_each_seed(logged: Callable[..., Any]) -> None:
    both = [*lines("teacher", 3, every=3), *lines("student", 2)]
    (task,), folder = logged(both, both)
    (recipe_curves,) = curves.curves_of(task, [folder])
    assert curves.describe(recipe_curves) == (
        "Training curves: distilbert on SST-2. "
        "teacher, seed 0, 3 steps: soft_target from 512 to 128, hard_label from 0.250 to 0.250; tuning score 80.03 at the end. "
        "student, seed 0, 2 steps: soft_target from 512 to 256, hard_label from 0.250 to 0.250. "
        "teacher, seed 1, 3 steps: soft_target from 512 to 128, hard_label from 0.250 to 0.250; tuning score 80.03 at the end. "
        "student, seed 1, 2 steps: soft_target from 512 to 256, hard_label from 0.250 to 0.250."
    )


@pytest.mark.parametrize("steps", [1, 30, *slow(12_345)])
def test_the_picture_has_every_term_and_its_labels_stand_apart(steps: int, logged: Callable[..., Any]) -> None:
    (task,), folder = logged([*lines("teacher", steps), *lines("student", steps, every=1)])
    (recipe_curves,) = curves.curves_of(task, [folder])
    drawn = svg([curves.chart(recipe_curves)])
    assert faults(drawn) == []
    for words in ("teacher: loss terms, weighted", "student: tuning split", ">soft_target<", ">hard_label<"):
        assert words in drawn


def test_they_stand_in_the_page_where_the_log_is(logged: Callable[..., Any], tmp_path: Path) -> None:
    tasks, folder = logged(lines("teacher", 30))
    (task,) = page_of(tasks, [folder]).tasks
    assert [recipe_curves.title for recipe_curves in task.curves] == ["Training curves: distilbert on SST-2"]
    results = collect([folder])
    write_report(results, tmp_path / "out", folders=[folder])
    page = tmp_path / "out" / "report.html"
    assert "Training curves: distilbert on SST-2" in page.read_text(encoding="utf-8")
    write_report(results, tmp_path / "out")
    assert "Training curves" not in page.read_text(encoding="utf-8")


def test_a_log_that_changed_is_drawn_again(logged: Callable[..., Any], tmp_path: Path) -> None:
    _, folder = logged(lines("teacher", 30))
    (log,) = folder.glob(f"*/{LOG}")
    for steps in (30, 31):
        log.write_text("\n".join(lines("teacher", steps)), encoding="utf-8")
        write_report(collect([folder]), tmp_path / "out", folders=[folder])
        assert f"{steps} steps" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
