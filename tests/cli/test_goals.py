"""A search that misses its goal: everything is made and reported, then the command fails and names the blocking matmuls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compress.cli.plans import _format_settings
from compress.cli.runs import _check_goals, _goals_met
from compress.errors import CheckFailed
from compress.spec.quantization import Quantize

GOAL = {"drop": 0.5, "flips": 0.2}
REACHED = {"drop": 0.1, "flips": 0.2, "flipped": 2, "flips_interval": [0.0242, 0.7205], "mean_logit_difference": 0.1}
TEXTS = {"tuning": 249, "train": 751}


def result(**info: Any) -> Any:
    return SimpleNamespace(run="a-run", models=[SimpleNamespace(name="student", precision="int8", info=info)])


def test_it_names_the_goal_what_was_reached_and_what_is_in_the_way() -> None:
    missed = result(
        goal=GOAL,
        reached=REACHED | {"drop": 0.7},
        texts=TEXTS,
        goal_met=False,
        blocking_matmuls=["layer.0/MatMul", "layer.1/MatMul"],
    )
    with pytest.raises(CheckFailed) as failed:
        _check_goals([missed])
    assert str(failed.value) == (
        "a-run: student int8: expected at most 0.5 points and 0.2% flips, found in the nearest mix, which was kept, 0.7 points on "
        "249 texts of the tuning split; 2 flips of 1,000 texts, 0.20% (95% interval 0.02 to 0.72%), counted on these and 751 more "
        "of train, which the model has seen; blocking matmuls: layer.0/MatMul, layer.1/MatMul"
    )


def test_a_goal_that_was_met_says_on_how_many_texts() -> None:
    (line,) = _goals_met(result(goal=GOAL, reached=REACHED, texts=TEXTS, goal_met=True))
    assert line.startswith(
        "student int8: at most 0.5 points and 0.2% flips, met with 0.1 points on 249 texts of the tuning"
    )
    assert "2 flips of 1,000 texts, 0.20% (95% interval 0.02 to 0.72%)" in line
    assert _goals_met(result()) == []


def test_a_goal_that_was_met_and_a_model_without_one_pass() -> None:
    _check_goals([result(goal_met=True), result()])


def test_a_plan_says_what_is_allowed_and_on_how_many_texts_that_is_judged() -> None:
    def spelled(**spec: Any) -> str:
        return _format_settings({"settings": Quantize.model_validate(spec).model_dump(), "layer_map": None})

    assert spelled(method="auto") == "method auto, at most 0.5 points and 0.2% flips of 1,000 texts"
    assert spelled(method="auto", max_flips=0.05).endswith("0.05% flips of 4,000 texts")
    assert spelled() == "method smoothquant"
