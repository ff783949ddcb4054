"""The plot: the Pareto front, intervals, and labels that can be read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from compress.report.page import tasks_of
from compress.report.placement import Box, Spot, place
from compress.report.points import HEIGHT, WIDTH, frame_of, labels_of, pareto, points_of
from compress.results import Result


def test_a_point_per_model_and_the_teacher_on_pytorch(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake(), fake("int8")])
    points = points_of(task)
    assert [point.label for point in points] == [
        "teacher fp32, 91.1 MB",
        "teacher fp32, PyTorch eager",
        "distilbert, student fp32, 69.9 MB",
        "distilbert, student int8, 17.8 MB",
        "int8, teacher int8, 23.4 MB",
    ]
    assert [point.eager for point in points] == [False, True, False, False, False]


def test_an_interval_stands_around_its_point_so_that_the_teachers_line_is_its_zero(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake()])
    teacher, student = points_of(task)[0], points_of(task)[3]
    delta = task.rows[4].delta
    assert delta is not None
    assert student.low == pytest.approx(student.y - delta.points + delta.low)
    assert (student.low <= teacher.y <= student.high) == (not delta.distinguishable)


def test_the_front_is_what_nothing_beats_in_speed_and_score(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake(), fake("int8")])
    front = pareto(points_of(task))
    assert [point.label.split(", ")[-2] for point in front] == ["student int8", "teacher int8", "teacher fp32"]
    for point in points_of(task):
        beaten = any(other.x <= point.x and other.y > point.y for other in points_of(task) if not other.eager)
        assert point in front or beaten or point.eager


def test_without_timing_the_plot_shows_size(fake: Callable[..., Result]) -> None:
    result = fake()
    models = tuple(model.model_copy(update={"onnx": None, "torch_eager": None}) for model in result.models)
    (task,) = tasks_of([result.model_copy(update={"models": models})])
    assert [round(point.x, 1) for point in points_of(task)] == [91.1, 69.9, 17.8]


def test_pixels_and_values_are_inverse(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake()])
    frame = frame_of(points_of(task))
    for point in points_of(task):
        assert frame.value(*frame.pixel(point.x, point.y)) == pytest.approx((point.x, point.y))


def boxes(points: list[Spot]) -> list[Box]:
    return [label.box for label in place(points, [], WIDTH, HEIGHT)]


def test_labels_of_real_results_are_free(realistic: list[Result]) -> None:
    """No label on another, on a point, or outside the frame."""
    for task in tasks_of(realistic):
        points = points_of(task)
        frame = frame_of(points)
        found = [label.box for label in labels_of(points, frame)]
        assert all(one.overlap(two) == 0 for one, two in combinations(found, 2))
        spots = [Box(x - 3, y - 3, x + 3, y + 3) for x, y in (frame.pixel(p.x, p.y) for p in points)]
        assert all(box.overlap(spot) == 0 for box in found for spot in spots)
        assert all(box.overlap(Box(0, 0, WIDTH, HEIGHT)) > 0.99 * (box.right - box.left) * 14 for box in found)


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_a_dozen_models_do_not_cover_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spots = [
        Spot(float(x), float(y), float(area), "tinybert, student int8, 17.8 MB")
        for x, y, area in zip(rng.uniform(60, 560, 12), rng.uniform(40, 300, 12), rng.uniform(50, 600, 12), strict=True)
    ]
    overlaps = sum(one.overlap(two) for one, two in combinations(boxes(spots), 2))
    assert overlaps == 0


def test_points_on_one_spot_have_labels_apart() -> None:
    one, two = boxes([Spot(300, 170, 200, "teacher fp32"), Spot(302, 171, 200, "student fp32")])
    assert one.overlap(two) == 0
