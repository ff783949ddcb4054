"""The conditions of a training, such as its threads, are recorded for each part before and after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from listeners import StopError
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from training_toys import fit, toy_model

from compress.spec.stages import Training
from compress.training import StepReport

SETTINGS = Training(max_steps=4, batch_size=8, learning_rate=1e-3)
ONE, TWO = {"threads": 1}, {"threads": 2}


def run(work: Path, conditions: dict[str, Any], stop: int | None = None) -> list[dict[str, Any]]:
    def on_step(report: StepReport) -> None:
        if report.step == stop:
            raise StopError

    return fit(toy_model(), SETTINGS, work, conditions=conditions, on_step=on_step, checkpoint_seconds=-1).conditions


def stopped(work: Path, conditions: dict[str, Any], step: int) -> None:
    with pytest.raises(StopError):
        run(work, conditions, step)


def test_one_part_has_one(tmp_path: Path) -> None:
    assert run(tmp_path, ONE) == [ONE]
    assert run(tmp_path, TWO) == [ONE]  # no step was left for the second part


def test_each_part_has_its_own(tmp_path: Path) -> None:
    stopped(tmp_path, ONE, 2)
    stopped(tmp_path, TWO, 3)
    assert run(tmp_path, TWO) == [ONE, TWO]


def test_the_same_ones_count_once(tmp_path: Path) -> None:
    stopped(tmp_path, ONE, 2)
    stopped(tmp_path, TWO, 3)
    assert run(tmp_path, ONE) == [TWO, ONE]


def test_those_of_a_state_of_before_are_not_known(tmp_path: Path) -> None:
    stopped(tmp_path, ONE, 3)
    path = tmp_path / "state.safetensors"
    with safe_open(path, framework="pt") as file:
        progress = json.loads(file.metadata()["progress"])
    del progress["conditions"]
    tensors: dict[str, torch.Tensor] = load_file(path)
    save_file(tensors, path, metadata={"progress": json.dumps(progress)})
    assert run(tmp_path, TWO) == [{}, TWO]
