"""Reports whose recipes have different seeds, times or tasks: no figure mixes them without saying so, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compress.model_choice import Limits
from compress.report import markdown_table, write_report
from compress.report.page import page_of, tasks_of
from compress.report.recommendation import recommend
from compress.report.sections.costs import compression
from compress.report.sections.overview import left_out_sentences, over_tasks, overview_table
from compress.report.sections.reliability import describe
from compress.report.sections.scores import main_table
from compress.results import Result, StageRecord
from compress.results.fidelity import ReliabilityBin

from .test_untimed import untimed

Make = Callable[..., Result]
TASKS = ("sst2", "mrpc")


def uneven(fake: Make) -> list[Result]:
    """Return int8 with two seeds on SST-2, and all else with one."""
    return [fake(recipe, task, seed) for task in TASKS for recipe in ("int8", "distilbert")
            for seed in (range(2) if (recipe, task) == ("int8", "sst2") else [0])]  # fmt: skip


def scored(result: Result) -> Result:
    """Return the run with tuning scores, the teacher's the highest."""
    fp32 = 89.0 if result.student else 90.0
    models = [
        model.model_copy(
            update={"info": {**model.info, "fidelity": {"int8_tuning_score": 88.0, "fp32_tuning_score": fp32}}}
        )
        if model.precision == "int8"
        else model
        for model in result.models
    ]
    training = StageRecord(
        kind="finetune teacher", key="1" * 64, cached=False, seconds=1.0, info={"tuning_score": 90.0}
    )
    return result.model_copy(update={"models": tuple(models), "stages": (training,)})


def test_teachers_of_other_seeds_are_named_by_them(fake: Make) -> None:
    task = tasks_of(uneven(fake))[0]
    assert [row.label for row in task.baselines] == ["teacher fp32 (seeds 0 and 1)", "teacher fp32 (seed 0)"]
    both, first = task.baselines
    assert both.headline == pytest.approx(sum(fake(seed=seed).models[0].headline for seed in range(2)) / 2)
    assert first.headline == fake().models[0].headline != both.headline
    kinds = {str(line.cells[1]): line.kind for line in main_table(task).lines}
    assert kinds["teacher fp32 (seeds 0 and 1)"] == kinds["teacher fp32 (seed 0)"] == "baseline"
    assert task.baseline_of(next(row for row in task.rows if row.recipe == "distilbert")) is first
    table = markdown_table(uneven(fake))
    assert "teacher fp32 (seeds 0 and 1)" in table and "teacher fp32 (seed 0)" in table


def test_the_teacher_stays_over_tasks_and_may_be_recommended(fake: Make) -> None:
    tasks = tasks_of([scored(run) for run in uneven(fake)])
    teacher, *others = over_tasks(tasks)
    assert teacher.label == "teacher fp32" and teacher.is_baseline and not any(each.is_baseline for each in others)
    assert [len(row.models) for row in teacher.rows] == [2, 1]
    recommendation = recommend(tasks, Limits(None, 100.0, 90.0))
    assert not recommendation.missed and "points on the tuning split: teacher fp32 (" in recommendation.lines[0]


def test_the_table_over_tasks_has_the_seeds_if_they_are_not_the_same(fake: Make) -> None:
    table = overview_table(tasks_of(uneven(fake)))
    assert table is not None
    place = [str(column) for column in table.columns].index("Seeds")
    assert {str(line.cells[1]): str(line.cells[place]) for line in table.lines if str(line.cells[0]) != "distilbert"} == {
        "teacher fp32": "1 to 2", "teacher int8": "1 to 2",
    }  # fmt: skip
    even = overview_table(tasks_of([fake("int8", task, seed) for task in TASKS for seed in range(2)]))
    assert even is not None and "Seeds" not in map(str, even.columns)


def test_a_page_says_what_has_one_seed(fake: Make) -> None:
    reading = " ".join(page_of(tasks_of(uneven(fake))).reading)
    assert "With one seed (distilbert on SST-2, and int8 and distilbert on MRPC) the intervals hold" in reading
    assert "One seed: the intervals hold" in " ".join(page_of(tasks_of([fake()])).reading)
    several = " ".join(page_of(tasks_of([fake(), fake(seed=1)])).reading)
    assert "With several seeds" in several and "the chance of which examples" not in several


def test_seeds_that_share_a_teacher_have_one(fake: Make) -> None:
    """As with --base-seed."""
    same = [fake().models[0], *fake(seed=1).models[1:]]
    (task,) = tasks_of([fake("int8"), fake(), fake(seed=1).model_copy(update={"models": tuple(same)})])
    assert [row.label for row in task.baselines] == ["teacher fp32"]
    (swapped,) = tasks_of([fake(), fake(seed=1).model_copy(update={"models": tuple(same)}), fake("int8")])
    assert [row.label for row in swapped.baselines] == ["teacher fp32"]
    assert str(main_table(swapped).lines[0].cells[2]) == f"{fake().models[0].headline:.2f}"


def test_teachers_of_other_seeds_that_score_the_same_are_not_one(fake: Make) -> None:
    def trained(recipe: str, seed: int, key: str) -> Result:
        run = fake(recipe, seed=seed)
        stage = StageRecord(kind="finetune teacher", key=key * 32, cached=False, seconds=1.0, info={})
        return run.model_copy(update={"models": (fake().models[0], *run.models[1:]), "stages": (stage,)})

    (task,) = tasks_of([trained("int8", 0, "a"), trained("distilbert", 1, "b")])
    assert [row.label for row in task.baselines] == ["teacher fp32 (seed 0)", "teacher fp32 (seed 1)"]
    (task,) = tasks_of([trained("int8", 0, "a"), *(trained("distilbert", seed, "ab"[seed]) for seed in range(2))])
    assert [row.label for row in task.baselines] == ["teacher fp32 (seed 0)", "teacher fp32 (seeds 0 and 1)"]
    (task,) = tasks_of([trained("int8", 0, "a"), *(trained("distilbert", seed, "a") for seed in range(2))])
    assert [row.label for row in task.baselines] == ["teacher fp32"]  # as with --base-seed
    (task,) = tasks_of([trained("int8", 0, "a"), trained("distilbert", 0, "b")])
    assert [row.label for row in task.baselines] == ["teacher fp32"]  # other code keys the same training in another way


def test_a_seed_that_was_not_timed_is_a_seed(fake: Make) -> None:
    (task,) = tasks_of([fake(), untimed(fake(seed=1))])
    assert [(variant.label, variant.seeds) for variant in task.variants] == [("distilbert", (0, 1))]
    assert [len(row.latencies((1, 32))) for row in task.rows if not row.eager] == [1, 1, 1]


def test_runs_that_differ_outside_their_recipe_are_named_by_it(fake: Make) -> None:
    def with_settings(seed: int, **changes: object) -> Result:
        run = fake(seed=seed)
        return run.model_copy(update={"settings": {**run.settings, **changes}})

    (task,) = tasks_of([with_settings(0), with_settings(1, precision="bf16")])
    assert [variant.label for variant in task.variants] == ["distilbert (fp32)", "distilbert (bf16)"]
    (task,) = tasks_of([with_settings(0), with_settings(1, bench={"runs": 30, "warmup": 9, "threads": 1})])
    assert [variant.label for variant in task.variants] == [
        "distilbert (timed: runs 30, warmup 5, threads 1)",
        "distilbert (timed: runs 30, warmup 9, threads 1)",
    ]


def test_recipes_that_a_task_lacks_are_named(fake: Make, tmp_path: Path) -> None:
    runs = [
        scored(run)
        for run in (fake("int8", "sst2"), fake("distilbert", "sst2"), fake("int8", "mrpc"), fake("int8", "stsb"))
    ]
    tasks = tasks_of(runs)
    assert left_out_sentences(tasks) == ["Means over tasks leave out distilbert (on SST-2 alone)"]
    write_report(runs, tmp_path, recommended=recommend(tasks, Limits(None, 100.0, None)))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.count("Means over tasks leave out distilbert") == 2, (
        "above the table over tasks, and with the recommendation"
    )
    assert left_out_sentences(tasks_of(uneven(fake))) == []


def test_stages_that_tasks_share_count_once_for_each_seed(fake: Make) -> None:
    def run(task: str, seed: int) -> Result:
        general = StageRecord(
            kind="general encoder", key=f"{seed:064x}", cached=False, seconds=3600, info={"threads": 1}
        )
        return fake("distilbert", task, seed, stages=(general,))

    for pairs in ([(task, seed) for task in TASKS for seed in range(2)], [("sst2", 0), ("mrpc", 0), ("mrpc", 1)]):
        cost = compression([task.variants[0] for task in tasks_of([run(*pair) for pair in pairs])])
        assert cost is not None and cost.cores == pytest.approx(1.0), pairs


def test_sizes_are_of_all_seeds(fake: Make) -> None:
    larger = fake(seed=1)
    last = larger.models[-1].model_copy(update={"file_bytes": 26_000_000, "parameters": 20_000_000})
    runs = [fake(), larger.model_copy(update={"models": (*larger.models[:-1], last)})]
    (line,) = [line for line in main_table(tasks_of(runs)[0]).lines if str(line.cells[1]) == "student int8"]
    assert [str(cell) for cell in line.cells[-4:-2]] == ["17.8 to 26.0", "17.4 to 20.0"]
    assert "17.8 to 26.0" in markdown_table(runs)


def test_how_precise_times_are_is_that_of_all_seeds(fake: Make) -> None:
    def known_to(seed: int, width: float) -> Result:
        models = []
        for model in fake(seed=seed).models:
            assert model.onnx is not None
            rows = tuple(row.model_copy(update={"half_width": width}) for row in model.onnx.latency)
            runtime = model.onnx.model_copy(update={"latency": rows})
            models.append(model.model_copy(update={"onnx": runtime, "torch_eager": None}))
        return fake(seed=seed, models=tuple(models))

    (task,) = page_of(tasks_of([known_to(0, 0.02), known_to(1, 0.3)])).tasks
    (timed,) = [value for name, value in task.details[0].facts if name == "Latency"]
    assert "known to ±30.0% or less" in timed


def test_intervals_that_are_made_in_two_ways_are_told_apart(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    written = [run_directory(fake(recipe, seed=seed)) for recipe in ("int8", "distilbert") for seed in range(2)]
    folders = [tmp_path / "runs"]
    text = " ".join(page_of(tasks_of(written, folders), folders).reading)
    assert "bootstrap over examples" in text and "not at hand" not in text
    (tmp_path / "runs" / written[0].run / "predictions.npz").unlink()
    text = " ".join(page_of(tasks_of(written, folders), folders).reading)
    assert "bootstrap over examples" in text and "those of int8 on SST-2 from the spread of the seeds" in text


def test_times_of_one_machine_are_compared_though_another_ran_untimed(fake: Make) -> None:
    there = fake().machine.model_copy(update={"cpu": "Another CPU"})
    page = page_of(tasks_of([fake(), untimed(fake(seed=1, machine=there))]))
    assert any("2 different machines" in line for line in page.warnings)
    assert not any("cannot be compared" in line for line in page.warnings)


def test_diagrams_of_several_seeds_say_that_they_pool_them(fake: Make) -> None:
    from compress.report.sections.reliability import charts

    def with_bins(seed: int) -> Result:
        bins = (ReliabilityBin(number=9, examples=8, confidence=0.9, right=0.75 + seed / 8),)
        run = fake(seed=seed)
        return run.model_copy(
            update={"models": tuple(model.model_copy(update={"reliability": bins}) for model in run.models)}
        )

    tasks = tasks_of([with_bins(0), with_bins(1)])
    assert "of 16" in describe(tasks)
    assert "over all seeds" in str(charts(tasks))
