"""Floating-point buffers that forwards move, such as moving ranges: micro-batches move them as the whole batch does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from training_toys import fit, toy_model

from compress.losses.hard_label import HardLabel
from compress.models.features.named import Features
from compress.objective import Objective
from compress.spec.stages import Training


class Following(Objective):
    """Follows the mean length of the texts, a tenth of the way with each forward."""

    def __init__(self) -> None:
        super().__init__((HardLabel(),))
        self.length = nn.Buffer(torch.zeros(()))

    def forward(self, student: Features, teacher: Features, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        self.length += 0.1 * (batch["attention_mask"].sum(1).float().mean() - self.length)
        return super().forward(student, teacher, batch)


@pytest.mark.parametrize("micro", [1, 3, 4])
def test_micro_batches_move_a_buffer_as_far_as_the_whole_batch(tmp_path: Path, micro: int):
    """3 does not divide 8, and each step starts where the one before ended."""
    settings, followed = Training(max_steps=3, batch_size=8), []
    for size in (None, micro):
        objective = Following()
        fit(
            toy_model(dropout=0),
            settings.model_copy(update={"micro_batch_size": size}),
            tmp_path / str(size),
            objective=objective,
        )
        followed.append(objective.length)
    assert followed[0] > 0
    torch.testing.assert_close(followed[1], followed[0], rtol=1e-6, atol=0)  # fp32 sums in another order
