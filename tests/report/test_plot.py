"""The plot: the Pareto front, intervals, and a legend that tells all models apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from compress.report import render
from compress.report.page import tasks_of
from compress.report.pictures.plot import chart
from compress.report.pictures.plot_points import COLOURS, legend_of, pareto, points_of
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


def test_with_several_teachers_no_line_is_that_of_all(fake: Callable[..., Result]) -> None:
    one, other = fake(), fake("int8").model_copy(update={"teacher": "another"})
    for runs, lines in ([one, fake("int8")], 1), ([one, other], 0):
        (task,) = tasks_of(runs)
        drawn = chart(task)
        assert sum(layer["mark"].get("strokeDash") == [2, 3] for layer in drawn["layer"]) == lines
        assert ("the dotted line" in str(drawn["title"])) == (lines == 1)


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


def test_by_size_the_front_is_what_nothing_beats_in_size_and_score(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake(), fake("int8")])
    points = points_of(task, by_size=True)
    assert [(point.x, point.eager) for point in points] == [(91.1, False), (69.9, False), (17.8, False), (23.4, False)]
    assert [point.x for point in pareto(points)] == [17.8, 23.4, 91.1]


def test_recipes_beyond_the_colours_share_them_in_the_legend(realistic: list[Result]) -> None:
    task = tasks_of(realistic)[0]
    assert legend_of(task) == [("distilbert", COLOURS[0]), ("int8", COLOURS[1])]
    assert {point.colour for point in points_of(task) if point.label.startswith("int8")} == {COLOURS[1]}
    rows = [replace(task.rows[2], recipe=f"r{number}") for number in range(7)]
    assert legend_of(replace(task, rows=(task.rows[0], *rows)))[:2] == [("r0, r6", COLOURS[0]), ("r1", COLOURS[1])]


def test_models_of_a_recipe_share_a_colour_and_no_two_marks_are_alike(realistic: list[Result]) -> None:
    for task in tasks_of(realistic):
        points = points_of(task)
        assert len({point.label for point in points}) == len(points)
        assert len({(point.colour, point.mark) for point in points}) == len(points)


def test_every_point_has_its_line_in_the_legend(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake(), fake("int8")])
    drawn = render.plot([task])
    assert [point.label for point in points_of(task) if f">{point.label}</text>" not in drawn] == []
