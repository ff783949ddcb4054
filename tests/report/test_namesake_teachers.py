"""Teachers and students with the same name but different weights are not seeds of one another: `v1/model` and `v2/model` are both
`model`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compress.errors import CompressError
from compress.provenance import TeacherOrigin
from compress.report.page import tasks_of
from compress.results import Result
from compress.results.teachers import EnsembleScore, TeacherScore

Make = Callable[..., Result]


def origin(weights: str, config: str = "c") -> TeacherOrigin:
    files = {"model.safetensors": weights * 64, "config.json": config * 64}
    return TeacherOrigin(kind="folder", name="model", files=files)


def rows(*results: Result) -> list[tuple[str, tuple[int, ...]]]:
    (task,) = tasks_of(results)
    return [(variant.label, variant.seeds) for variant in task.variants]


def ensemble(result: Result, *origins: TeacherOrigin) -> EnsembleScore:
    shared: dict[str, Any] = {
        "tuning_score": 90.0,
        "scores": result.models[0].scores,
        "headline": result.models[0].headline,
        "predictions": "teacher-fp32",
    }
    names = ("model", "model (teacher-2)")
    several = (
        TeacherScore(name=name, licence="unknown", origin=each, **shared)
        for name, each in zip(names, origins, strict=True)
    )
    return EnsembleScore(teachers=tuple(several), **shared)


def test_other_weights_of_one_seed_are_rows_apart(fake: Make) -> None:
    assert rows(fake(origin=origin("1")), fake(origin=origin("2"))) == [
        ("distilbert (11111111)", (0,)),
        ("distilbert (22222222)", (0,)),
    ]


def test_other_weights_of_other_seeds_are_not_pooled(fake: Make) -> None:
    assert rows(fake(origin=origin("1")), fake(origin=origin("1"), seed=1), fake(origin=origin("2"), seed=2)) == [
        ("distilbert (11111111)", (0, 1)),
        ("distilbert (22222222)", (2,)),
    ]


def test_weights_that_are_alike_are_told_apart_by_the_file_that_is_not(fake: Make) -> None:
    assert rows(fake(origin=origin("1", "a")), fake(origin=origin("1", "b"))) == [
        ("distilbert (aaaaaaaa)", (0,)),
        ("distilbert (bbbbbbbb)", (0,)),
    ]


def test_the_same_files_from_another_place_are_seeds(fake: Make) -> None:
    hub = TeacherOrigin(kind="hub", name="owner/model", revision="e" * 40, files=origin("1").files)
    assert rows(fake(origin=origin("1")), fake(origin=hub, seed=1)) == [("distilbert", (0, 1))]


def test_other_weights_of_a_pretrained_student(fake: Make) -> None:
    first, second = (fake(origin=origin("1"), student_origin=origin(weights), seed=int(weights)) for weights in "23")
    assert rows(first, second) == [("distilbert (22222222)", (2,)), ("distilbert (33333333)", (3,))]


def test_other_weights_of_a_second_teacher(fake: Make) -> None:
    one = fake(origin=origin("1"))
    runs = [
        one.model_copy(update={"seed": int(second), "ensemble": ensemble(one, origin("1"), origin(second))})
        for second in "23"
    ]
    name = "distilbert"
    assert rows(*runs) == [(f"{name} (22222222)", (2,)), (f"{name} (33333333)", (3,))]


def test_machines_keep_their_letters_alone(fake: Make) -> None:
    there = fake().machine.model_copy(update={"cpu": "Another CPU"})
    assert rows(fake(origin=origin("1")), fake(origin=origin("2"), machine=there)) == [
        ("distilbert [A]", (0,)),
        ("distilbert [B]", (0,)),
    ]


def test_a_result_of_before_goes_with_the_one_teacher_of_its_name(fake: Make) -> None:
    before = fake(seed=1)
    assert rows(fake(origin=origin("1")), before, fake(origin=origin("1"), seed=2)) == [("distilbert", (0, 1, 2))]
    assert rows(before, fake(seed=2)) == [("distilbert", (1, 2))]
    assert rows(fake(origin=origin("1")), before, fake(origin=origin("2"))) == [
        ("distilbert (11111111)", (0,)),
        ("distilbert", (1,)),
        ("distilbert (22222222)", (0,)),
    ]


def test_the_same_weights_and_seed_are_refused_as_before(fake: Make) -> None:
    with pytest.raises(CompressError, match="runs a and b are the same recipe, task and seed 0; leave one out"):
        rows(fake(run="a", origin=origin("1")), fake(run="b", origin=origin("1")))
