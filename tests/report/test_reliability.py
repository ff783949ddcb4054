"""Reliability diagrams: bins against a loop over the decisions, over seeds, and on the pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress.report import write_report
from compress.report.page import tasks_of
from compress.report.pictures.plot_points import points_of
from compress.report.sections.reliability import charts, describe, is_drawn, pool_bins
from compress.report.sections.scores import score_of
from compress.results import Result
from compress.results.fidelity import ReliabilityBin
from compress.stats.fidelity import BINS, calibration_error, reliability

RNG = np.random.default_rng(0)
SURE = RNG.uniform(0.34, 1, 500)
RIGHT = RNG.uniform(size=500) < SURE**2  # overconfident


def bins_of(sure: np.ndarray, right: np.ndarray) -> tuple[ReliabilityBin, ...]:
    return tuple(
        ReliabilityBin(number=number, examples=count, confidence=mean, right=share)
        for number, count, mean, share in reliability(sure, right)
    )


def test_the_bins_are_those_of_a_loop() -> None:
    expected = []
    for number in range(1, BINS + 1):
        inside = [at for at in range(len(SURE)) if (number - 1) / BINS < SURE[at] <= number / BINS]
        if inside:
            mean, share = (sum(each[at] for at in inside) / len(inside) for each in (SURE, RIGHT))
            expected.append((number, len(inside), mean, share))
    bins = reliability(SURE, RIGHT)
    assert [each[:2] for each in bins] == [each[:2] for each in expected]
    np.testing.assert_allclose(bins, expected, rtol=1e-12)
    gaps = sum(count * abs(share - mean) for _, count, mean, share in expected)
    assert calibration_error(SURE, RIGHT) == pytest.approx(100 * gaps / len(SURE), rel=1e-12)


@pytest.mark.parametrize("border", [1 / BINS, 5 / BINS, 1.0])
def test_a_border_belongs_to_the_bin_below_it(border: float) -> None:
    ((number, count, *_),) = reliability(np.array([border]), np.array([True]))
    assert (number, count) == (round(border * BINS), 1)


def with_bins(result: Result, *parts: slice) -> Result:
    """Return the result with each model's bins computed from a part of the decisions."""
    models = tuple(
        model.model_copy(update={"reliability": bins_of(SURE[part], RIGHT[part])})
        for model, part in zip(result.models, parts, strict=True)
    )
    return result.model_copy(update={"models": models})


def test_seeds_are_pooled_decision_by_decision(fake: Callable[..., Result]) -> None:
    half = slice(250), slice(250, 500)
    runs = [with_bins(fake(seed=seed), slice(500), slice(500), half[seed]) for seed in (0, 1)]
    (task,) = tasks_of(runs)
    for pooled, expected in zip(pool_bins(task.rows[-1]), bins_of(SURE, RIGHT), strict=True):
        assert (pooled.number, pooled.examples) == (expected.number, expected.examples)
        assert (pooled.confidence, pooled.right) == pytest.approx((expected.confidence, expected.right))


def test_a_model_that_seeds_share_counts_once(fake: Callable[..., Result]) -> None:
    half = slice(250), slice(250, 500)
    runs = [with_bins(fake(seed=seed), slice(500), slice(500), half[seed]) for seed in (0, 1)]
    (task,) = tasks_of(runs)
    assert pool_bins(task.baseline) == list(bins_of(SURE, RIGHT))
    same = [with_bins(fake(seed=seed), slice(500), slice(500), slice(500)) for seed in (0, 1)]
    same[1] = same[1].model_copy(update={"models": same[0].models})
    (task,) = tasks_of(same)
    assert pool_bins(task.rows[-1]) == list(bins_of(SURE, RIGHT))
    assert "±" not in score_of(task.rows[-1], None)


def test_the_pages_have_the_picture_and_its_figures_in_words(fake: Callable[..., Result], tmp_path: Path) -> None:
    result = with_bins(fake(), slice(500), slice(500), slice(500))
    write_report([result], tmp_path)
    (task,) = tasks_of([result])
    words = describe([task])
    assert "teacher fp32" in words and "student int8" in words and "student fp32" not in words
    assert 'aria-roledescription="point"' in (tmp_path / "reliability.svg").read_text()
    assert "(reliability.svg)" in (tmp_path / "report.md").read_text()
    assert "How sure the models are" in (tmp_path / "report.html").read_text()


def test_results_without_bins_have_no_picture(fake: Callable[..., Result], tmp_path: Path) -> None:
    """Older results, and kinds whose answers have no probability; the existing picture of the report is removed."""
    write_report([with_bins(fake(), slice(500), slice(500), slice(500))], tmp_path)
    write_report([fake()], tmp_path)
    assert not is_drawn(*tasks_of([fake()]))
    assert not (tmp_path / "reliability.svg").exists()
    assert "How sure" not in (tmp_path / "report.md").read_text()


def test_few_decisions_have_no_picture(fake: Callable[..., Result], tmp_path: Path) -> None:
    """No bin has ten decisions in one seed; over two seeds some have."""
    few = [with_bins(fake(seed=seed), *[slice(40 * seed, 40 * seed + 40)] * 3) for seed in (0, 1)]
    most = [max(each.examples for each in result.final.reliability) for result in few]
    (both,) = tasks_of(few)
    assert max(most) < 10 <= max(each.examples for each in pool_bins(both.rows[-1]))
    assert not is_drawn(*tasks_of(few[:1])) and is_drawn(both)
    for part, there in ((few[:1], False), (few, True)):
        write_report(part, tmp_path)
        assert (tmp_path / "reliability.svg").exists() == there
        assert ("How sure" in (tmp_path / "report.md").read_text()) == there


def test_a_recipe_has_the_colour_that_it_has_in_the_plot(fake: Callable[..., Result]) -> None:
    results = [with_bins(fake(recipe), *[slice(500)] * models) for recipe, models in (("distilbert", 3), ("int8", 2))]
    (task,) = tasks_of(results)
    (chart,) = charts([task])
    _, lines, _ = chart["layer"]
    shown = {value["label"]: value["colour"] for value in lines["data"]["values"]}
    expected = {point.tip["Model"]: point.colour for point in points_of(task) if not point.eager}
    assert len(set(shown.values())) == 3
    assert shown == {label: expected[label] for label in shown}


def test_teachers_of_one_colour_have_lines_of_their_own(fake: Callable[..., Result]) -> None:
    """Vega joins the points of a line layer by its channels: the colour alone would join both teachers."""
    results = [with_bins(fake(recipe, seed=seed), *[slice(500)] * models)
               for seed, (recipe, models) in enumerate((("distilbert", 3), ("int8", 2)))]  # fmt: skip
    (task,) = tasks_of(results)
    (chart,) = charts([task])
    _, lines, _ = chart["layer"]
    values = lines["data"]["values"]
    teachers = {value["label"] for value in values if "teacher fp32" in value["label"]}
    assert len(teachers) == 2 and len({value["colour"] for value in values if value["label"] in teachers}) == 1
    assert lines["encoding"]["detail"]["field"] == "label"


def test_models_that_are_always_sure_and_right_have_axes(fake: Callable[..., Result], tmp_path: Path) -> None:
    certain = (ReliabilityBin(number=BINS, examples=50, confidence=1, right=1),)
    result = fake()
    models = tuple(model.model_copy(update={"reliability": certain}) for model in result.models)
    result = result.model_copy(update={"models": models})
    write_report([result], tmp_path)
    assert ">90%</text>" in (tmp_path / "reliability.svg").read_text()
