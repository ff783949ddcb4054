"""A search that misses its goal: everything is made and told, then the command fails and names what is in the way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compress.cli.runs import _check_goals
from compress.errors import CheckFailed


def result(**info: Any) -> Any:
    return SimpleNamespace(run="a-run", models=[SimpleNamespace(name="student", precision="int8", info=info)])


def test_it_names_the_goal_what_was_reached_and_what_is_in_the_way() -> None:
    missed = result(
        goal={"drop": 0.5, "flips": 0.2},
        reached={"drop": 0.7, "flips": 0.15, "mean_logit_difference": 0.1},
        goal_met=False,
        in_the_way=["layer.0/MatMul", "layer.1/MatMul"],
    )
    with pytest.raises(CheckFailed) as failed:
        _check_goals([missed])
    assert str(failed.value) == (
        "a-run: student int8: expected at most 0.5 points and 0.2% flips, found 0.7 points and 0.15% flips in the nearest "
        "mix, which was kept; in the way: layer.0/MatMul, layer.1/MatMul"
    )


def test_a_goal_that_was_met_and_a_model_without_one_pass() -> None:
    _check_goals([result(goal_met=True), result()])
