"""What the simulated GPU finds: a tensor left on the CPU, and each way to wait for the GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu_runs import LOGGED, SHORT, STUDENT, Recipe, build, gpu_world
from tokenizers import Tokenizer

from compress.losses import LOSSES
from compress.losses.loss import LossForm

BRIEF: Recipe = (
    f"\n  - finetune: {{{SHORT}, micro_batch_size: 3}}\n  - distill: {{{SHORT}, losses: [{{name: hard_label}}]}}",
    "teacher",
    STUDENT,
)


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    return gpu_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer)


def planted(monkeypatch: pytest.MonkeyPatch, fault: Callable[[Any], Any]) -> None:
    """Plant a fault in the student's logits before the loss."""
    whole = LOSSES["hard_label"]

    def compute(spec: Any, logits: Any, teacher: Any, batch: Any) -> Any:
        return whole.form.compute(spec, fault(logits), teacher, batch)

    monkeypatch.setitem(LOSSES, "hard_label", replace(whole, form=LossForm(compute)))


def test_a_tensor_left_on_the_cpu_is_found(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda logits: logits * torch.ones(logits.shape[1]))
    with pytest.raises(RuntimeError, match=r"found cuda:0 and a cpu tensor of \[2\]"):
        build(world, "brief", BRIEF)


WAITS: dict[str, Callable[[Any], Any]] = {
    "__float__": lambda logits: logits * float(logits.isfinite().all()),
    "index": lambda logits: logits[logits.isfinite()].view_as(logits),
    "to cuda": lambda logits: logits + torch.zeros(logits.shape[1]).to(logits.device),
    "__bool__": lambda logits: logits if logits.isfinite().all() else logits.nan_to_num(),
    "to cpu": lambda logits: logits + logits.detach().cpu().mean(),
}


def test_what_waits_for_the_gpu_is_counted(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda logits: reduce(lambda tensor, wait: wait(tensor), WAITS.values(), logits))
    steps = build(world, "brief", BRIEF).steps
    assert len(steps) == 2
    for step in steps:
        assert set(step - Counter(LOGGED)) >= {f"test_gpu_faults.py:<lambda> {what}" for what in WAITS}
