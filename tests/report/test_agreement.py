"""Where models agree with their teacher, compared with the predictions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress.errors import CompressError
from compress.report.page import page_of, tasks_of
from compress.report.sections.agreement import agreement_table, disagreement_tables
from compress.report.text.cells import Table
from compress.report.text.words import of_first_split
from compress.results import PREDICTIONS, Result, write_result
from compress.results.fidelity import Disagreement

Make = Callable[..., Result]


def table_of(results: list[Result], folder: Path) -> Table | None:
    (task,) = tasks_of(results, [folder])
    return agreement_table(task, [folder])


def arrays_of(folder: Path, result: Result) -> dict[str, np.ndarray]:
    with np.load(folder / result.run / PREDICTIONS) as file:
        return dict(file)


def rewrite(folder: Path, result: Result, **changed: np.ndarray | None) -> None:
    """Replace arrays of the split `dev` in the predictions of `result`; None removes one."""
    arrays = arrays_of(folder, result) | {f"{name}/dev": array for name, array in changed.items() if array is not None}
    kept = {name: array for name, array in arrays.items() if changed.get(name.removesuffix("/dev"), array) is not None}
    np.savez(folder / result.run / PREDICTIONS, allow_pickle=False, **kept)


def test_shares_by_class_and_by_length(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    result = run_directory(fake())
    tokens = np.random.default_rng(5).integers(3, 41, 400)
    rewrite(runs, result, tokens=tokens)
    table = table_of([result], runs)
    assert table is not None
    arrays = arrays_of(runs, result)
    teacher, gold = arrays["teacher-fp32/dev"].argmax(1), arrays["gold/dev"]
    ends = np.sort(tokens)[[99, 199, 299, 399]]
    groups = {"All": gold >= 0, "negative": gold == 0, "positive": gold == 1}
    for start, end in zip((0, *ends[:3]), ends, strict=True):
        members = (tokens > start) & (tokens <= end)
        groups[f"{tokens[members].min()} to {end} tokens"] = members
    assert [column.text for column in table.columns] == ["Recipe", "Model", *groups]
    assert [column.unit for column in table.columns[2:]] == [f"{mask.sum()} examples" for mask in groups.values()]
    assert [[cell.text for cell in line.cells] for line in table.lines] == [
        ["distilbert", f"student {precision}", *(f"{100 * same[mask].mean():.1f}%" for mask in groups.values())]
        for precision in ("fp32", "int8")
        for same in [arrays[f"student-{precision}/dev"].argmax(1) == teacher]
    ]


def test_a_mean_over_seeds_each_with_its_own_teacher(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    results = [run_directory(fake("int8", seed=seed)) for seed in range(3)]
    table = table_of(results, tmp_path / "runs")
    predictions = [arrays_of(tmp_path / "runs", result) for result in results]
    same = [each["teacher-int8/dev"].argmax(1) == each["teacher-fp32/dev"].argmax(1) for each in predictions]
    assert table is not None and len(table.lines) == 1
    assert table.lines[0].cells[2].text == f"{100 * np.mean(same):.1f}%"


def test_results_of_before_lengths_were_recorded_have_their_classes(
    fake: Make, run_directory: Make, tmp_path: Path
) -> None:
    result = run_directory(fake())
    rewrite(tmp_path / "runs", result, tokens=None)
    table = table_of([result], tmp_path / "runs")
    assert table and [column.text for column in table.columns] == ["Recipe", "Model", "All", "negative", "positive"]


def test_texts_of_one_length_are_one_group(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    result = run_directory(fake())
    rewrite(tmp_path / "runs", result, tokens=np.full(400, 12))
    table = table_of([result], tmp_path / "runs")
    assert table and [str(column) for column in table.columns[5:]] == ["12 tokens, 400 examples"]


def test_of_many_classes_the_least_is_named(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    result = run_directory(fake())
    labels = tuple(f"class {number}" for number in range(8))
    gold = np.arange(400) % 8
    right = np.eye(8, dtype=np.float32)[gold]
    wrong = np.where((gold == 5)[:, None] & (np.arange(400) % 16 < 8)[:, None], np.roll(right, 1, 1), right)
    names = {model.predictions: right if "teacher" in model.predictions else wrong for model in result.models}
    rewrite(tmp_path / "runs", result, gold=gold, **names)
    points = [{"scores": {"dev": {"accuracy": each}}, "headline": each} for each in (100.0, 93.75, 93.75)]
    models = [model.model_copy(update=update) for model, update in zip(result.models, points, strict=True)]
    many = result.model_copy(
        update={"task": result.task.model_copy(update={"labels": labels}), "models": tuple(models)}
    )
    write_result(many, tmp_path / "runs" / many.run)
    table = table_of([many], tmp_path / "runs")
    assert table and [column.text for column in table.columns[2:4]] == ["All", "Least"]
    assert [str(cell) for cell in table.lines[0].cells[2:4]] == ["93.8%", "50.0%, class 5, of 50"]


def test_there_is_none_without_predictions_or_classes(fake: Make, run_directory: Make, tmp_path: Path) -> None:
    assert table_of([fake()], tmp_path) is None
    assert table_of([fake(task="stsb")], tmp_path) is None
    result = run_directory(fake())
    said = [page_of(tasks_of([result], folders), folders) for folders in ([tmp_path / "runs"], [])]
    assert [any("Agreement is" in line for line in page.reading) for page in said] == [True, False]


@pytest.mark.parametrize("tokens", [np.ones(399, int), np.zeros(400, int), np.ones(400), np.ones((400, 1), int)])
def test_lengths_that_are_none_are_refused(fake: Make, run_directory: Make, tmp_path: Path, tokens: np.ndarray) -> None:
    result = run_directory(fake())
    rewrite(tmp_path / "runs", result, tokens=tokens)
    with pytest.raises(CompressError, match=r"predictions\.npz: tokens/dev: expected a number of tokens of each"):
        table_of([result], tmp_path / "runs")


def test_examples_on_which_a_student_and_the_teacher_part(fake: Make) -> None:
    result = fake()
    parted = Disagreement(
        row=7, teacher="negative", model="positive", teacher_confidence=0.9876, model_confidence=0.75, gold="model"
    )
    models = tuple(
        model.model_copy(update={"disagreements": (parted,)}) if model.predictions == "student-fp32" else model
        for model in result.models
    )
    (task,) = tasks_of([result.model_copy(update={"models": models}), fake("int8")])
    (table,) = disagreement_tables(task)
    assert "student fp32" in table.caption and "dev" in table.caption
    assert [[str(cell) for cell in line.cells] for line in table.lines] == [
        ["7", "negative", "98.8%", "positive", "75.0%", "model"]
    ]
    assert str(table.columns[0]) == "Row" and "first seed" not in table.caption
    assert disagreement_tables(tasks_of([result])[0]) == []
    of_words = result.task.model_copy(update={"kind": "tagging"})
    seeds = [
        result.model_copy(update={"models": models, "task": of_words, "seed": seed, "run": f"run-{seed}"})
        for seed in (0, 1)
    ]
    (table,) = disagreement_tables(tasks_of(seeds)[0])
    assert str(table.columns[0]) == "Word" and "words of dev" in table.caption and "of the first seed" in table.caption


def test_numbers_of_a_mean_over_splits_count_through_all_of_them(fake: Make) -> None:
    info = fake(task="mnli").task
    assert of_first_split(info) == "dev_matched"
    rows = {**info.data.rows, "dev_matched": 10, "dev_mismatched": 10}
    mean = info.model_copy(
        update={
            "splits": ("mean", "dev_matched", "dev_mismatched"),
            "headline": "mean",
            "data": info.data.model_copy(update={"rows": rows}),
        }
    )
    assert of_first_split(mean) == "dev_matched and dev_mismatched, one after the other,"
