"""For ranking, the gradients of a batch in parts, on one process or several, equal those of the whole batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook
from training_toys import fit, toy_data, toy_model

from compress.losses.hard_label import HardLabel
from compress.losses.margin_mse import MarginMse
from compress.losses.soft_target import SoftTarget
from compress.models.features.named import Features, compute_features
from compress.models.random_models import random_classifier
from compress.objective import Objective
from compress.processes import ranks
from compress.spec.stages import Training
from compress.tasks.batches.queries import EncodedQueries
from compress.training import data_parallel


def ranker(seed: int) -> Any:
    """Return a ranker with weights so large that texts get different scores."""
    config = toy_model(dropout=0).config.to_dict()  # made first: making it seeds torch
    torch.manual_seed(seed)
    model = random_classifier(config, kind="ranking", labels=())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8 if parameter.ndim > 1 else 1)
    return model


def passages() -> EncodedQueries:
    """Return queries with 1 to 7 passages; the first has no relevant one."""
    texts, rng = toy_data(), np.random.default_rng(4)
    query = np.sort(rng.integers(0, len(texts) // 4, len(texts)))
    relevance = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0], len(texts))
    relevance[query == query[0]] = 0.0
    return EncodedQueries(texts.input_ids, texts.token_type_ids, np.column_stack([relevance, query]))


def gradients(work: Path, micro: int | None) -> dict[str, Tensor]:
    """Return the gradients of the first step; the limit is too high for clipping to change them."""
    # float64: a shift of all scores changes nothing, so what is left of fp32 sums is rounding, which varies by CPU
    model, other, step_gradients = ranker(1).double(), ranker(2).double().eval(), list[dict[str, Tensor]]()

    def teacher(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return compute_features(other, batch, ["logits"])

    def record(optimizer: Any, arguments: Any, keywords: Any) -> None:
        step_gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})

    objective = Objective((SoftTarget(weight=2.0), HardLabel(), MarginMse(weight=3.0)), kind="ranking")
    settings = Training(max_steps=1, batch_size=16, micro_batch_size=micro, max_grad_norm=1e9)
    handle = register_optimizer_step_pre_hook(record)
    try:
        fit(model, settings, work, objective=objective, teacher=teacher, data=passages())
    finally:
        handle.remove()
    return step_gradients[0]


@pytest.mark.parametrize("micro", [1, 5])
def test_parts_add_up(tmp_path: Path, micro: int):
    """A micro-batch of one example has one query."""
    whole, parts = gradients(tmp_path / "whole", None), gradients(tmp_path / "parts", micro)
    assert whole.keys() == parts.keys()
    largest = max(grad.abs().max().item() for grad in whole.values())
    assert largest > 0.01
    for name, grad in whole.items():  # losses are computed in fp32
        torch.testing.assert_close(parts[name], grad, rtol=1e-5, atol=1e-6 * largest, msg=name)


GROUPS = np.repeat([4, 1, 9, 2, 7], [3, 5, 1, 4, 3])
BATCH = np.arange(100, 100 + len(GROUPS))


def test_parts_hold_whole_queries():
    parts = data_parallel.split_share(BATCH, GROUPS, 8)
    assert [len(part) for part in parts] == [8, 8]
    assert [len(part) for part in data_parallel.split_share(BATCH, GROUPS, 4)] == [3, 5, 1, 4, 3]
    np.testing.assert_array_equal(np.concatenate(parts), BATCH)


def test_processes_share_whole_queries(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranks, "count", lambda: 2)
    shares = [data_parallel.share(BATCH, GROUPS, rank) for rank in range(2)]
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), BATCH)
    numbers = [set(GROUPS[share - 100]) for share in shares]
    assert not numbers[0] & numbers[1] and abs(len(shares[0]) - len(shares[1])) <= 2
    assert len(data_parallel.share(BATCH[:3], GROUPS[:3], 1)) == 0
