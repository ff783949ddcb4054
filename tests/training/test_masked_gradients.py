"""For losses on masked tokens, the gradients of a batch in parts equal those of the whole, however unevenly its tokens are masked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook
from transformers import BertConfig, BertModel

from compress.corpus import MaskedBatches, PairBatches, TextBatches, TokenShards
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.masked_lm import MaskedTokens
from compress.losses.masked_soft_target import MaskedSoftTarget
from compress.models.features.named import Features, compute_features
from compress.models.masked_head import MaskedLmHeads
from compress.models.masked_lm import masked_lm_around
from compress.objective import Objective
from compress.spec.stages import Training
from compress.tokenization.special import SpecialIds
from compress.training import make_accelerator, train

SPECIAL = SpecialIds(cls=2, sep=3, pad=0, mask=4, every=(0, 1, 2, 3, 4))
LENGTH, BATCH = 24, 8


def text(kind: type[TextBatches]) -> MaskedBatches:
    """Return documents of 9 to 30 tokens, in sequences or pairs of segments."""
    rng = np.random.default_rng(3)
    documents = [np.append(rng.integers(5, 40, rng.integers(9, 31)), SPECIAL.sep) for _ in range(30)]
    shards = TokenShards((np.concatenate(documents).astype(np.uint16),), SPECIAL, 40)
    return MaskedBatches(kind(shards, length=LENGTH, batch_size=BATCH, seed=1))


def masked_lm(seed: int) -> Any:
    size = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    size |= {"intermediate_size": 32, "max_position_embeddings": LENGTH, "initializer_range": 0.5}
    torch.manual_seed(seed)
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return masked_lm_around(BertModel(BertConfig.from_dict(size | rates)))


def first_step(work: Path, data: MaskedBatches, micro: int | None) -> tuple[list[Tensor], dict[str, float]]:
    """Return the gradients and losses of the first step; the limit is too high for clipping to change them."""
    student, teacher = masked_lm(1), masked_lm(2).eval()
    losses = (MaskedSoftTarget(weight=5.0), MaskedTokens(weight=2.0), HiddenCosine())
    objective = Objective(losses, widths=(16, 16), masked_lm=MaskedLmHeads(student, teacher))
    gradients: list[Tensor] = []
    reports: list[dict[str, float]] = []

    def targets(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return compute_features(teacher.base_model, batch, objective.teacher_features)

    def record(optimizer: Any, arguments: Any, keywords: Any) -> None:
        every = (parameter for group in optimizer.param_groups for parameter in group["params"])
        gradients.extend(parameter.grad.clone() for parameter in every if parameter.grad is not None)

    handle = register_optimizer_step_pre_hook(record)
    try:
        train(
            student.base_model,
            objective,
            data,
            Training(max_steps=1, batch_size=BATCH, micro_batch_size=micro, max_grad_norm=1e9),
            accelerator=make_accelerator("fp32"),
            teacher=targets,
            evaluate=None,
            work=work,
            on_step=lambda report: reports.append(report.losses),
        )
    finally:
        handle.remove()
    return gradients, reports[0]


@pytest.mark.parametrize("kind", [TextBatches, PairBatches])
@pytest.mark.parametrize("micro", [1, 3])
def test_parts_add_up(tmp_path: Path, kind: type[TextBatches], micro: int):
    data = text(kind)
    whole, losses = first_step(tmp_path / "whole", data, None)
    parts, summed = first_step(tmp_path / "parts", data, micro)
    assert summed == pytest.approx(losses, rel=1e-5)  # fp32 sums in another order
    assert len(whole) == len(parts) > 10
    largest = max(gradient.abs().max().item() for gradient in whole)
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6 * largest)


@pytest.mark.parametrize("kind", [TextBatches, PairBatches])
def test_masked_tokens_are_counted_as_they_are_collated(kind: type[TextBatches]):
    data = text(kind)
    seen: set[int] = set()
    for step in range(2 * len(data)):  # masks differ between epochs
        indices = data.indices(step)
        counts = data.counts("masked_tokens", indices)
        assert counts.tolist() == (data.collate(indices)["labels"] != -100).sum(axis=1).tolist()
        assert data.counts("tokens", indices).tolist() == data.lengths(indices).tolist()
        seen.update(counts.tolist())
    assert len(seen) > 3
