"""Held-out loss after training in several parts: the head is on the training device, while the encoder may still be elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pretrain_toys import plan, run_stages

from compress.pipeline.training import held_out
from compress.pipeline.training.run import TrainingRun


def test_the_whole_model_is_where_its_head_is(world: Path, monkeypatch: pytest.MonkeyPatch):
    """float64 stands for GPU memory: the head is converted weight by weight, and the encoder stays."""
    train, loss, to = TrainingRun.train, held_out.held_out_loss, torch.nn.Module.to

    def apart(self: TrainingRun, *rest: Any, **named: Any) -> Any:
        info = train(self, *rest, **named)
        self.objective.to(torch.float64)
        assert {parameter.dtype for parameter in self.model.parameters()} == {torch.float32}
        monkeypatch.setattr(torch.nn.Module, "to", lambda module, place: to(module, torch.float64))
        return info

    def checked(model: Any, *rest: Any, **named: Any) -> Any:
        monkeypatch.setattr(torch.nn.Module, "to", to)
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
        return loss(model, *rest, **named)

    monkeypatch.setattr(TrainingRun, "train", apart)
    monkeypatch.setattr(held_out, "held_out_loss", checked)
    artifacts = run_stages(world, plan(world), "tokenize", "pretrain")
    assert artifacts["pretrained"].info["held_out"]["loss"] > 0
