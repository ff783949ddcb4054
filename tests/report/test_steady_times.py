"""Recipes are timed in runs of their own: a slow minute of the machine decides neither what to ship nor the Pareto front."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compress.model_choice import Limits
from compress.report import render
from compress.report.grouping.steady_times import steady_times
from compress.report.page import tasks_of
from compress.report.pictures.plot_points import points_of, shape_of
from compress.report.recommendation import recommend
from compress.results import Latency, Result, Runtime

from .test_uneven_seeds import scored

Make = Callable[..., Result]


def on_one_thread(result: Result, slower: float = 1.0) -> Result:
    """Return the run with CPU times, all models of which took `slower` times as long."""

    def timed(runtime: Runtime | None) -> Runtime | None:
        if runtime is None:
            return None
        rows = [_slowed(each, slower) for each in runtime.latency]
        return runtime.model_copy(update={"latency": tuple(rows)})

    models = [
        each.model_copy(update={"onnx": timed(each.onnx), "torch_eager": timed(each.torch_eager)})
        for each in result.models
    ]
    return scored(result.model_copy(update={"models": tuple(models)}))


def _slowed(latency: Latency, slower: float) -> Latency:
    return latency.model_copy(
        update={"p50": latency.p50 * slower, "cpu_p50": latency.p50 * slower, "cpu_speedup": latency.speedup}
    )


def runs(fake: Make, slower: float) -> list[Result]:
    return [on_one_thread(fake("int8")), on_one_thread(fake("distilbert"), slower)]


@pytest.mark.parametrize("slowed", [0, 1])
def test_times_are_those_of_runs_on_a_steady_machine(fake: Make, slowed: int) -> None:
    (steady,) = tasks_of(runs(fake, 1.0))
    pair = [
        on_one_thread(fake(recipe), 1.25 if number == slowed else 1.0)
        for number, recipe in enumerate(("int8", "distilbert"))
    ]
    (drifted,) = tasks_of(pair)
    for shape in steady.shapes:
        for one, other in zip(steady.rows, drifted.rows, strict=True):
            assert steady_times(drifted, other, shape) == pytest.approx(steady_times(steady, one, shape))
    before, after = points_of(steady), points_of(drifted)
    assert [point.x for point in after] == pytest.approx([point.x for point in before])
    raw = drifted.rows[-1].latency(shape_of(drifted) or (1, 32))
    assert raw is not None and raw.p50 == pytest.approx((1.25 if slowed else 1.0) * after[-1].x)


def test_a_drift_too_small_for_a_sentence_leaves_charts_with_the_times_of_the_table(fake: Make) -> None:
    (task,) = tasks_of(runs(fake, 1.006))
    shape = shape_of(task) or (1, 32)
    assert "Times are scaled" not in render.plot([task])
    drawn = [row for row in task.rows if not row.eager or row.model.name == task.baseline.model.name]
    for row, point in zip(drawn, points_of(task), strict=True):
        latency = row.latency(shape)
        assert latency is not None and point.x == latency.cpu_p50


def test_a_slow_run_does_not_exclude_its_model(fake: Make) -> None:
    (task,) = tasks_of(runs(fake, 1.0))
    student = next(row for row in task.rows if row.label == "distilbert, student int8")
    limit = Limits(max_latency_ms=1.1 * steady_times(task, student, (1, 128))[0])
    still = recommend(tasks_of(runs(fake, 1.0)), limit)
    drifted = recommend(tasks_of(runs(fake, 1.25)), limit)
    assert still.lines[0].endswith("MB).") and "distilbert, student int8" in still.lines[0]
    assert drifted.lines[0] == still.lines[0]
    said = "it differs by up to 25% between runs"
    assert said in " ".join(drifted.lines) and "scaled" not in " ".join(still.lines)
    drawn = [render.plot(tasks_of(runs(fake, slower))) for slower in (1.0, 1.25)]
    assert ["Times are scaled" in each for each in drawn] == [False, True]


def test_seeds_are_scaled_by_their_own_runs(fake: Make) -> None:
    """Of two seeds timed apart, the slower one does not count as slow if its teacher was, too."""
    (task,) = tasks_of([on_one_thread(fake(seed=seed), 1 + seed / 2) for seed in range(2)])
    times = steady_times(task, task.rows[-1], (1, 128))
    assert len(times) == 2 and times[0] == pytest.approx(times[1])
    quickest = min(each.cpu_p50 or 0.0 for each in task.baseline.latencies((1, 128)))
    assert steady_times(task, task.baseline, (1, 128)) == pytest.approx([quickest] * 2)


def test_teachers_trained_apart_are_as_fast_as_one_another(fake: Make) -> None:
    """With uneven seeds they have rows of their own."""
    recipes = [on_one_thread(fake("int8", seed=seed)) for seed in range(2)]
    (task,) = tasks_of([*recipes, on_one_thread(fake("distilbert"), 1.25)])
    assert len(task.baselines) == 2
    (alone,) = tasks_of([on_one_thread(fake("distilbert"))])
    for shape in task.shapes:
        assert steady_times(task, task.rows[-1], shape) == pytest.approx(steady_times(alone, alone.rows[-1], shape))


def test_a_run_without_its_teachers_time_keeps_its_own(fake: Make) -> None:
    one, other = runs(fake, 1.25)
    teacher, *rest = other.models
    (task,) = tasks_of([one, other.model_copy(update={"models": (teacher.model_copy(update={"onnx": None}), *rest)})])
    row, model = task.rows[-1], rest[-1]
    assert model.onnx is not None
    own = next(each.cpu_p50 for each in model.onnx.latency if (each.batch, each.length) == (1, 128))
    assert steady_times(task, row, (1, 128)) == [own]
