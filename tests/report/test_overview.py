"""The table over tasks: means, shares and intervals against explicit sums, and which models it includes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compress.report import markdown_table
from compress.report.page import tasks_of
from compress.report.sections.overview import left_out_sentences, over_tasks, overview_table
from compress.report.sections.sentences import findings
from compress.results import Result


def test_means_shares_and_intervals_are_over_tasks(fake: Callable[..., Result]) -> None:
    tasks = tasks_of([fake("distilbert", task) for task in ("sst2", "stsb", "mrpc")])
    teacher, student, small = over_tasks(tasks)
    rows = [[model.headline for model in task.first.models] for task in tasks]
    means = [sum(column) / 3 for column in zip(*rows, strict=True)]
    assert [each.headline for each in (teacher, student, small)] == pytest.approx(means)
    assert teacher.share is None and student.share == pytest.approx(means[1] / means[0])
    # The same interval in each of three tasks: its half width, 1.26, is divided by the root of three for their mean.
    assert student.delta is not None and small.delta is not None and teacher.delta is None
    assert student.delta.points == pytest.approx(-0.92)
    assert student.delta.low == pytest.approx(-0.92 - 1.26 / 3**0.5)
    assert student.delta.high == pytest.approx(-0.92 + 1.26 / 3**0.5)


def test_a_mean_of_equal_deltas_narrows_until_it_is_distinguishable(fake: Callable[..., Result]) -> None:
    one, three = (over_tasks(tasks_of([fake("distilbert", task) for task in names]))[2].delta
                  for names in (("sst2",), ("sst2", "stsb", "mrpc")))  # fmt: skip
    assert one is not None and three is not None
    assert not one.distinguishable and three.distinguishable


def test_files_of_different_sizes_are_from_the_least_to_the_largest(fake: Callable[..., Result]) -> None:
    runs = []
    for task, size in (("sst2", 14.0), ("mrpc", 13.5), ("stsb", 14.7), ("mnli", 14.1)):
        run = fake("distilbert", task)
        last = run.models[-1].model_copy(update={"file_bytes": int(size * 1e6)})
        runs.append(run.model_copy(update={"models": (*run.models[:-1], last)}))
    table = overview_table(tasks_of(runs))
    assert table is not None
    assert [line.cells[-2].text for line in table.lines][1:] == ["69.9", "13.5 to 14.7"]


def test_models_that_a_task_lacks_are_left_out(fake: Callable[..., Result]) -> None:
    tasks = tasks_of([fake("distilbert", "sst2"), fake("int8", "sst2"), fake("distilbert", "mrpc")])
    assert [each.label for each in over_tasks(tasks)] == [
        "teacher fp32",
        "distilbert, student fp32",
        "distilbert, student int8",
    ]


def test_another_setting_on_one_task_leaves_the_recipe_in_the_means(fake: Callable[..., Result]) -> None:
    """Epochs may differ by task; what differs within a task names the run on each."""

    def run(task: str, epochs: float, rate: str = "1e-4") -> Result:
        result = fake("distilbert", task)
        stages = [{"distill": {"epochs": epochs, "learning_rate": rate}}]
        return result.model_copy(
            update={"run": f"{task}-{epochs}-{rate}", "recipe": result.recipe | {"stages": stages}}
        )

    def means(runs: list[Result]) -> list[str]:
        return [each.label for each in over_tasks(tasks_of(runs)) if not each.is_baseline]

    alone = [run("sst2", 2), run("mrpc", 3)]
    assert means(alone) == ["distilbert, student fp32", "distilbert, student int8"]
    assert means([*alone, run("sst2", 2, "3e-4")]) == [
        "distilbert (distill.learning_rate=1e-4), student fp32",
        "distilbert (distill.learning_rate=1e-4), student int8",
    ]
    tasks = tasks_of([*alone, run("sst2", 3)])
    assert [each.recipe for each in over_tasks(tasks)][1:] == ["distilbert (distill.epochs=3)"] * 2
    assert left_out_sentences(tasks) == ["Means over tasks leave out distilbert (distill.epochs=2) (on SST-2 alone)"]


def test_the_same_recipe_of_two_teachers_is_told_apart(fake: Callable[..., Result]) -> None:
    large = {"teacher": "mpnet-base"}
    runs = [fake("int8", task, **extra) for task in ("sst2", "mrpc") for extra in ({}, large)]
    labels = [each.label for each in over_tasks(tasks_of(runs))]
    assert "int8 (minilm-l6), teacher int8" in labels and "int8 (mpnet-base), teacher int8" in labels


def test_a_recipe_with_a_teacher_of_its_own_is_held_against_that(fake: Callable[..., Result]) -> None:
    def weaker(task: str) -> Result:
        run = fake("int8", task)
        models = [model.model_copy(update={"headline": model.headline - 20}) for model in run.models]
        return run.model_copy(update={"models": tuple(models), "teacher": "small"})

    tasks = tasks_of([run for task in ("sst2", "stsb") for run in (fake("distilbert", task), weaker(task))])
    table = overview_table(tasks)
    assert table is not None
    assert [(line.cells[0].text, line.cells[5].text) for line in table.lines if line.kind == "baseline"] == [
        ("baseline (minilm-l6)", "–"), ("baseline (small)", "–"),
    ]  # fmt: skip
    (share,) = [line.cells[5].text for line in table.lines if line.cells[1].text == "teacher int8"]
    assert share == "99.7%"


def test_there_is_a_table_of_several_tasks_with_more_than_the_baseline_alone(fake: Callable[..., Result]) -> None:
    assert overview_table(tasks_of([fake("distilbert", "sst2")])) is None
    assert overview_table(tasks_of([fake("distilbert", "sst2"), fake("int8", "mrpc")])) is None
    table = overview_table(tasks_of([fake("distilbert", "sst2"), fake("distilbert", "stsb")]))
    assert table is not None
    assert [str(column) for column in table.columns[2:5]] == ["SST-2", "STS-B", "Mean"]
    assert [line.kind for line in table.lines] == ["baseline", "model", "model"]


def test_tasks_of_the_same_recipes_share_one_table_in_the_readme(fake: Callable[..., Result]) -> None:
    tasks = ("sst2", "stsb", "mrpc")
    runs = [fake(recipe, task) for task in tasks for recipe in ("distilbert", "int8")]
    table, source, *_ = markdown_table(runs).split("\n\n")
    heading, _, *rows = table.splitlines()
    shown = [task.first.task.title for task in tasks_of(runs)]
    assert [cell.strip() for cell in heading.split("|")[4:7]] == shown
    assert [tuple(cell.strip() for cell in row.split("|")[1:3]) for row in rows] == [
        ("baseline", "teacher fp32"),
        ("distilbert", "student int8"),
        ("int8", "teacher int8"),
    ]
    last = [each for each in over_tasks(tasks_of(runs)) if each.rows[0].name != "student fp32"]
    for row, overall in zip(rows, last, strict=True):
        cells = [cell.strip() for cell in row.split("|")]
        assert cells[4:7] == [f"{each.headline:.2f}" for each in overall.rows]
        assert cells[7] == f"{overall.headline:.2f}"
    assert [cell.strip() for cell in heading.split("|")[9:11]] == ["p50 1 × 32, ms", "p50 1 × 128, ms"]
    first = markdown_table([run for run in runs if run.task.title == shown[0]]).split("\n\n")[0].splitlines()[2:]
    assert [row.split("|")[9:11] for row in rows] == [row.split("|")[7:9] for row in first]
    assert f"Times: {shown[0]}'s models; × is relative to the teacher in the same run." in source


def test_tasks_of_different_recipes_keep_a_row_of_each_in_the_readme(fake: Callable[..., Result]) -> None:
    table = markdown_table([fake("distilbert", "sst2"), fake("int8", "mrpc")])
    assert "SST-2 (accuracy)" in table and "MRPC (" in table


def test_recipes_that_share_another_teacher_are_compared_with_that(fake: Callable[..., Result]) -> None:
    """The second recipe of a teacher adds no second row for the teacher."""

    def of(run: Result, teacher: str, points: float) -> Result:
        models = (run.models[0].model_copy(update={"headline": points}), *run.models[1:])
        return run.model_copy(update={"teacher": teacher, "models": models})

    runs = [of(fake("int8"), "small", 80.0), of(fake("distilbert"), "large", 95.0)]
    runs.append(runs[1].model_copy(update={"recipe": runs[1].recipe | {"name": "logits"}}))
    (task,) = tasks_of(runs)
    compared = {row.label: task.baseline_of(row).headline for row in task.rows}
    assert {points for label, points in compared.items() if label.startswith(("int8", "teacher fp32 (small)"))} == {
        80.0
    }
    assert {points for label, points in compared.items() if label.startswith(("distilbert", "logits"))} == {95.0}
    assert [(row.recipe, row.name) for row in task.baselines] == [
        ("", f"teacher fp32 ({name})") for name in ("small", "large")
    ]
    assert [row.headline for row in task.baselines] == [80.0, 95.0]
    (sentence,) = (line for line in findings(task) if line.startswith("logits"))
    assert "where large has 95.00" in sentence


def test_the_readmes_table_names_subsets_and_leaves_common_texts_to_the_report(fake: Callable[..., Result]) -> None:
    notes = (
        "train has 6 of 10 rows: a subset",
        "3 of 9 dev texts also stand in train",
        "near to train (x): dev 1 of 9 (11.1%)",
    )
    result = fake()
    data = result.task.data.model_copy(update={"notes": notes})
    below = markdown_table([result.model_copy(update={"task": result.task.model_copy(update={"data": data})})])
    assert notes[0] in below and "SST-2 (subset)" in below and "also stand in train, or nearly" in below
    assert notes[1] not in below and notes[2] not in below
    assert "nearly" not in markdown_table([result]) and "subset" not in markdown_table([result])
