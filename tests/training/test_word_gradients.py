"""For token classification, the gradients of a batch in parts equal those of the whole, however uneven its windows are."""

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
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.soft_target import SoftTarget
from compress.metrics.tags import concatenate_labels
from compress.models.features.named import Features, compute_features
from compress.models.random_models import random_classifier
from compress.objective import Objective
from compress.runtime.words import Places
from compress.spec.stages import Training
from compress.tasks import EncodedWords


def tagger(seed: int) -> Any:
    config = toy_model(dropout=0).config.to_dict()  # made first: making it seeds torch
    torch.manual_seed(seed)
    return random_classifier(config, kind="tagging", labels=("O", "B-A", "I-A"))


def words(*, by_word: bool) -> EncodedWords:
    """Return windows of 3 to 11 tokens, with 0 to 4 words each."""
    texts, rng = toy_data(), np.random.default_rng(4)
    counts = [int(rng.integers(0, min(4, length - 2) + 1)) for length in texts.lengths]
    window = np.repeat(np.arange(len(texts)), counts)
    position = np.concatenate([1 + np.arange(count) for count in counts])
    gold = concatenate_labels([rng.integers(0, 3, count) for count in counts])
    return EncodedWords(texts.input_ids, texts.token_type_ids, gold, Places(window, position, position), by_word)


def gradients(work: Path, micro: int | None, *, by_word: bool) -> dict[str, Tensor]:
    """Return the gradients of the first step; the limit is too high for clipping to change them."""
    model, other, step_gradients = tagger(1), tagger(2).eval(), list[dict[str, Tensor]]()

    def teacher(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return compute_features(other, batch, ["hidden[-1]", "logits"])

    def record(optimizer: Any, arguments: Any, keywords: Any) -> None:
        step_gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})

    objective = Objective((SoftTarget(weight=2.0), HardLabel(), HiddenCosine(weight=3.0)), kind="tagging")
    settings = Training(max_steps=1, batch_size=8, micro_batch_size=micro, max_grad_norm=1e9)
    handle = register_optimizer_step_pre_hook(record)
    try:
        fit(model, settings, work, objective=objective, teacher=teacher, data=words(by_word=by_word))
    finally:
        handle.remove()
    return step_gradients[0]


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("micro", [1, 3])
def test_parts_add_up(tmp_path: Path, micro: int, by_word: bool):
    whole = gradients(tmp_path / "whole", None, by_word=by_word)
    parts = gradients(tmp_path / "parts", micro, by_word=by_word)
    assert whole.keys() == parts.keys()
    largest = max(grad.abs().max().item() for grad in whole.values())
    for name, grad in whole.items():  # fp32 sums in another order
        torch.testing.assert_close(parts[name], grad, rtol=1e-4, atol=1e-6 * largest, msg=name)
