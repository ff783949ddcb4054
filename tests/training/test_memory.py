"""When memory runs out, a step is repeated in smaller micro-batches, with the same result as if these had been configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from listeners import StopError
from torch import nn
from training_toys import Projected, fit, same, toy_model, weights

from compress.errors import CompressError
from compress.spec.stages import Training
from compress.training import StepReport

SETTINGS = Training(epochs=2, batch_size=8, learning_rate=1e-3, evaluate_every=0.5)


def run(work: Path, limit: int, *, micro: int | None = None, **more: Any) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Return the weights, trained with dropout, and the notices; a forward pass on more than `limit` examples runs out of
    memory."""

    def full(module: nn.Module, inputs: Any, named: dict[str, Any], output: Any) -> None:
        if module.training and len(named["input_ids"]) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")

    model, objective, notices = toy_model(), Projected(), list[str]()
    model.register_forward_hook(full, with_kwargs=True)  # after dropout was drawn
    settings = SETTINGS.model_copy(update={"micro_batch_size": micro})
    fit(model, settings, work, objective=objective, on_notice=notices.append, **more)
    return weights(model, objective), notices


def test_a_step_that_finds_no_memory_is_done_again_in_smaller_parts(tmp_path: Path):
    actual, notices = run(tmp_path / "found", limit=3)
    expected, silence = run(tmp_path / "asked", limit=3, micro=2)
    assert same(actual, expected)
    assert notices == ["step 1: out of memory; it goes on with 2 examples a forward"]
    assert not silence


def test_what_was_found_is_kept_for_a_restart(tmp_path: Path):
    def stop(report: StepReport) -> None:
        if report.step == 4:
            raise StopError

    with pytest.raises(StopError):
        run(tmp_path / "stopped", limit=3, on_step=stop, checkpoint_seconds=-1)
    again, notices = run(tmp_path / "stopped", limit=8)
    assert same(again, run(tmp_path / "whole", limit=3)[0])
    assert not notices


def test_one_example_that_is_too_large_is_the_end(tmp_path: Path):
    with pytest.raises(CompressError, match="out of memory with one example at a time; lower max_length"):
        run(tmp_path, limit=0)


def test_no_memory_for_the_optimizer_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: Any, **named: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.optim.AdamW, "step", full)
    with pytest.raises(CompressError, match="step 1: out of memory beside the examples, for the gradients' sum"):
        run(tmp_path, limit=8)


def test_the_first_parts_of_a_step_that_finds_no_memory_do_not_count_twice(tmp_path: Path):
    def trained(work: Path, micro: int, full_at: int) -> dict[str, torch.Tensor]:
        model, objective, calls = toy_model(), Projected(), list[int]()

        def full(module: nn.Module, inputs: Any, named: dict[str, Any], output: Any) -> None:
            if module.training:
                calls.append(len(named["input_ids"]))
                if len(calls) == full_at:
                    raise torch.OutOfMemoryError("CUDA out of memory")

        model.register_forward_hook(full, with_kwargs=True)
        settings = Training(epochs=1, batch_size=8, learning_rate=1e-3, micro_batch_size=micro)
        fit(model, settings, work, objective=objective)
        assert not full_at or calls[:4] == [4, 4, 2, 2]
        return weights(model, objective)

    assert same(trained(tmp_path / "halved", 4, 2), trained(tmp_path / "small", 2, 0))
