"""Cost of recipes: core-hours by part, GPU-hours separately, sums over tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from compress.report.page import tasks_of
from compress.report.sections.costs import Part, compression, costs_table, part_of
from compress.report.sections.overview import overview_table
from compress.results import Result, StageRecord


def stage(kind: str, seconds: float, *, key: str = "0", **info: object) -> StageRecord:
    return StageRecord(kind=kind, key=key * 64, cached=False, seconds=seconds, info=info)


def on_another_task(stages: Sequence[StageRecord], key: str = "1") -> list[StageRecord]:
    """Return the stages with keys of their own, except those that train on plain text."""
    return [
        each if part_of(each.kind) is Part.PLAIN_TEXT else each.model_copy(update={"key": key * 64}) for each in stages
    ]


STAGES = (
    stage("finetune teacher", 7200, threads=1, device="cpu"),
    stage("general encoder", 1800, threads=2, device="cpu"),
    stage("distill student", 900, threads=4, device="cpu"),
    stage("quantize student-int8", 360),
)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("grow grown", Part.TEACHER),
        ("pretrain teacher", Part.TEACHER), ("finetune teacher-lr3e-05", Part.TEACHER), ("choose teacher", Part.TEACHER),
        ("adopt teacher", Part.TEACHER), ("finetune student", Part.TASK), ("tokenize text-8000000", Part.PLAIN_TEXT),
        ("masked_lm masked-lm", Part.PLAIN_TEXT), ("general encoder", Part.PLAIN_TEXT), ("augment augmented", Part.TASK),
        ("distill intermediate", Part.TASK), ("prune teacher-pruned", Part.TASK), ("export teacher-fp32", Part.EXPORT),
        ("quantize student-int8", Part.EXPORT),
    ],
)  # fmt: skip
def test_a_stage_counts_where_it_belongs(kind: str, part: Part) -> None:
    assert part_of(kind) is part


def test_hours_are_wall_clock_times_threads_and_means_over_seeds(fake: Callable[..., Result]) -> None:
    slower = (*STAGES[:2], stage("distill student", 2700, threads=4, device="cpu"), STAGES[3])
    (task,) = tasks_of([fake(stages=STAGES), fake(seed=1, stages=slower)])
    table = costs_table(task)
    assert table is not None
    assert [str(column) for column in table.columns[1:]] == [
        "Teacher's training, core-hours", "On plain text, core-hours", "On the task, core-hours", "Export, int8, core-hours",
        "Without the teacher's training, core-hours",
    ]  # fmt: skip
    # 2 h on 1 thread; half an hour on 2; a quarter and three quarters of an hour on 4; 0.1 h on the run's 2.
    assert [str(cell) for cell in table.lines[0].cells] == ["distilbert", "2.0", "1.0", "2.0", "0.20", "3.2"]


def test_hours_of_gpus_stand_apart_and_count_each(fake: Callable[..., Result]) -> None:
    stages = (*STAGES[:2], stage("distill student", 900, threads=2, device="cuda", processes=4), STAGES[3])
    (task,) = tasks_of([fake(stages=stages), fake("int8", stages=(STAGES[0], STAGES[3]))])
    table = costs_table(task)
    assert table is not None
    assert [[str(cell) for cell in line.cells] for line in table.lines] == [
        ["distilbert", "2.0 core-h", "1.0 core-h", "1.0 GPU-h", "0.20 core-h", "1.0 GPU-h + 1.2 core-h"],
        ["int8", "2.0 core-h", "–", "–", "0.20 core-h", "0.20 core-h"],
    ]


def test_over_tasks_hours_add_up_but_what_tasks_share_counts_once(fake: Callable[..., Result]) -> None:
    tasks = tasks_of([fake(stages=STAGES), fake(task="mrpc", stages=on_another_task(STAGES))])
    one = compression([tasks[0].variants[0]])
    assert one is not None and one.cores == pytest.approx(1 + 1 + 0.2)
    table = overview_table(tasks)
    assert table is not None and str(table.columns[-1]) == "Took, core-hours"
    assert [str(line.cells[-1]) for line in table.lines] == ["–", "3.4", "3.4"]  # both tasks share one hour of the 4.4


def test_of_seeds_with_plain_text_stages_of_their_own_the_mean_counts_once(fake: Callable[..., Result]) -> None:
    general = [stage("general encoder", 3600 * hours, key=key, threads=1) for hours, key in ((1, "a"), (3, "b"))]
    tasks = tasks_of(
        [
            fake(task=task, seed=seed, stages=[general[seed], stage("distill student", 3600, key=task[0], threads=1)])
            for task in ("sst2", "mrpc")
            for seed in (0, 1)
        ]
    )
    table = overview_table(tasks)
    assert table is not None and {str(line.cells[-1]) for line in table.lines[1:]} == {"4.0"}  # 2 of plain text, 1 + 1


def test_of_a_task_without_stages_on_record_no_sum_is_made(fake: Callable[..., Result]) -> None:
    table = overview_table(tasks_of([fake(stages=STAGES), fake(task="mrpc", stages=())]))
    assert table is not None and {str(line.cells[-1]) for line in table.lines} == {"–"}


def test_without_stages_there_is_no_table(fake: Callable[..., Result]) -> None:
    tasks = tasks_of([fake(stages=()), fake(task="mrpc", stages=())])
    assert costs_table(tasks[0]) is None
    table = overview_table(tasks)
    assert table is not None and {str(line.cells[-1]) for line in table.lines} == {"–"}
