"""Tables and sentences against the results that they are made from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from report_tables import column, only

from compress.report.page import page_of
from compress.report.sections import sentences
from compress.report.sections.scores import latency_table, main_table, times_of
from compress.report.text import numbers
from compress.results import Latency, Result
from compress.results.fidelity import Delta


def test_a_row_per_model_the_shared_teacher_once(fake: Callable[..., Result]) -> None:
    table = main_table(only([fake(), fake("int8")]))
    assert list(zip(column(table, "Recipe"), column(table, "Model"), strict=True)) == [
        ("baseline", "teacher fp32"),
        ("baseline", "teacher fp32, PyTorch eager"),
        ("distilbert", "student fp32"),
        ("distilbert", "student fp32, PyTorch eager"),
        ("distilbert", "student int8"),
        ("int8", "teacher int8"),
        ("baseline", "teacher fp32, A/A: measured again"),
        ("published", "MiniLM v2 paper, L6-H384 (dev)"),
    ]
    assert all(len(line.cells) == len(table.columns) for line in table.lines)


def test_the_numbers_of_a_row(fake: Callable[..., Result]) -> None:
    table = main_table(only([fake()]))
    row = dict(zip([heading.text for heading in table.columns], map(str, table.lines[4].cells), strict=True))
    assert row == {
        "Recipe": "distilbert",
        "Model": "student int8",
        "File": "17.8",
        "Parameters": "17.4",
        "Per token": "10.8",
        "Per example": "271",
        "Accuracy": "89.90",
        "Against the teacher": "−1.03 (−2.41 to +0.23), not distinguishable",
        "1 × 32": "0.980 / – (5.9×)",
        "1 × 128": "2.74 / – (5.9×)",
        "own lengths": "0.902 / – (5.9×)",  # 30 runs are too few for a p90
    }


def test_a_p90_of_enough_runs_stands_beside_the_median(fake: Callable[..., Result]) -> None:
    task = only([fake()])
    times = {"batch": 1, "length": 32, "p50": 2.5, "p90": 3.25, "p99": 4, "examples_per_second": 400, "speedup": 1}
    shown = {runs: str(times_of(task, Latency(**times, runs=runs), True)) for runs in (35, 36)}
    assert shown == {35: "2.50 / –", 36: "2.50 / 3.25"}


def test_an_interval_without_0_is_a_difference(fake: Callable[..., Result]) -> None:
    result = fake()
    worse = result.models[2].model_copy(update={"delta": Delta(points=-3, low=-4.5, high=-1.5, mcnemar_p=0.0001)})
    task = only([result.model_copy(update={"models": (*result.models[:2], worse)})])
    assert column(main_table(task), "Against the teacher")[4] == "−3.00 (−4.50 to −1.50)"
    assert "not distinguishable" not in sentences.findings(task)[0]


def _with_deltas(result: Result, *deltas: Delta) -> Result:
    models = (model.model_copy(update={"delta": each}) for model, each in zip(result.models[1:], deltas, strict=True))
    return result.model_copy(update={"models": (result.models[0], *models)})


def test_a_difference_that_one_of_several_comparisons_shows_by_chance_says_so(fake: Callable[..., Result]) -> None:
    clear = Delta(points=-3, low=-4.5, high=-1.5, mcnemar_p=0.0001)
    small, none = clear.model_copy(update={"mcnemar_p": 0.03}), Delta(points=-1, low=-2, high=0.5, mcnemar_p=0.2)
    task = only([_with_deltas(fake(), none, small), _with_deltas(fake("int8"), clear)])
    doubted = "not distinguishable (Holm over 3: p 0.060)"
    assert column(main_table(task), "Against the teacher")[2:6] == [
        "−1.00 (−2.00 to +0.50), not distinguishable",
        "–",
        f"−3.00 (−4.50 to −1.50), {doubted}",
        "−3.00 (−4.50 to −1.50)",
    ]
    assert [doubted in line for line in sentences.findings(task)] == [True, False]
    assert any("Holm (1979)" in line for line in page_of([task]).reading)


def test_one_comparison_needs_no_correction(fake: Callable[..., Result]) -> None:
    task = only([_with_deltas(fake("int8"), Delta(points=-3, low=-4.5, high=-1.5, mcnemar_p=0.049))])
    assert "not distinguishable" not in column(main_table(task), "Against the teacher")[3]
    assert not any("Holm" in line for line in page_of([task]).reading)


def test_several_metrics_and_several_splits_have_their_columns(fake: Callable[..., Result]) -> None:
    mrpc, mnli = main_table(only([fake(task="mrpc")])), main_table(only([fake(task="mnli")]))
    assert [heading.text for heading in mrpc.columns[2:5]] == ["Accuracy", "F1", "Mean"]
    assert [heading.text for heading in mnli.columns[2:4]] == ["Accuracy, dev_matched", "Accuracy, dev_mismatched"]


def test_the_mean_of_metrics_says_of_which_split_it_is(fake: Callable[..., Result]) -> None:
    run = fake(task="mrpc")
    models = [
        model.model_copy(update={"scores": {**model.scores, "more": {"accuracy": 1.0, "f1": 3.0}}})
        for model in run.models
    ]
    info = run.task.model_copy(update={"splits": (*run.task.splits, "more")})
    table = main_table(only([run.model_copy(update={"task": info, "models": tuple(models)})]))
    split = run.task.splits[0]
    assert [heading.text for heading in table.columns[2:7]] == [
        *(f"Accuracy, {split}", f"F1, {split}", "Accuracy, more", "F1, more", f"Mean, {split}")
    ]
    assert column(table, f"Mean, {split}")[0] == numbers.points(run.models[0].headline)


def test_scores_and_times_stand_before_sizes(fake: Callable[..., Result]) -> None:
    assert [heading.text for heading in main_table(only([fake()])).columns] == [
        *("Recipe", "Model", "Accuracy", "Against the teacher", "1 × 32", "1 × 128", "own lengths"),
        *("File", "Parameters", "Per token", "Per example"),
    ]


def test_published_scores_stay_away_from_a_subset(fake: Callable[..., Result]) -> None:
    assert "published" in column(main_table(only([fake(task="sst2")])), "Recipe")
    assert "published" not in column(main_table(only([fake(task="mnli")])), "Recipe")


def test_every_shape_is_in_the_latency_table(fake: Callable[..., Result]) -> None:
    table = latency_table(only([fake()]))
    assert table is not None
    assert column(table, "Batch × length") == ["1 × 32", "1 × 128", "32 × 128", "own lengths"] * 6
    assert column(table, "Model")[-1] == "A/A: the baseline again"


def test_runs_without_timing_have_no_latency(fake: Callable[..., Result]) -> None:
    result = fake(noise=())
    models = tuple(model.model_copy(update={"onnx": None, "torch_eager": None}) for model in result.models)
    task = only([result.model_copy(update={"models": models})])
    assert latency_table(task) is None
    names = [heading.text for heading in main_table(task).columns]
    assert names[names.index("Against the teacher") + 1 :] == ["File", "Parameters", "Per token", "Per example"]
    assert "speed" not in sentences.findings(task)[0]


def test_what_shrinks_and_what_does_not_is_said(fake: Callable[..., Result]) -> None:
    (sentence,) = sentences.tradeoffs(only([fake(), fake("int8")]))
    assert sentence == (
        "int8, teacher int8 shrinks file size to 26% and latency at 1 × 128 to 31% of the teacher's; "
        "it does not shrink parameters (100%) and FLOPs per token (100%)."
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (0.5, "0.500"),
        (0.98, "0.980"),
        (2.312, "2.31"),
        (25.04, "25.0"),
        (22504.2, "22,504"),
        (9.999, "10.0"),
    ],
)
def test_significant_digits(value: float, text: str) -> None:
    assert numbers.significant(value) == text


def test_signs() -> None:
    assert [numbers.signed(value) for value in (0.0, -0.001, 0.004, 1.5, -1.5)] == [
        "0.00",
        "0.00",
        "0.00",
        "+1.50",
        "−1.50",
    ]
    assert [numbers.points(value) for value in (-0.001, -0.006, 71.428)] == ["0.00", "−0.01", "71.43"]
    assert [numbers.seconds(value) for value in (4.24, 192, 7500)] == ["4.2 s", "3 min 12 s", "2 h 05 min"]
    assert [numbers.times(value) for value in (5.12, 1.0, 0.451)] == ["5.1×", "1.0×", "0.45×"]
