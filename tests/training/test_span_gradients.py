"""For question answering, the gradients of a batch in parts equal those of the whole batch, and training learns the answers."""

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
from compress.models.features.named import Features, compute_features
from compress.models.features.predict import predict_logits
from compress.models.random_models import random_classifier
from compress.objective import Objective
from compress.spec.stages import Training
from compress.tasks import Encoded


class Windows(Encoded):
    """Windows whose first token means no answer and whose context begins at the third; `labels` [window, 2] are positions."""

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        places = np.arange(length)
        compared = (places < self.lengths[indices, None]) & ((places == 0) | (places > 1))
        return {"labels": self.labels[indices], "compared": compared.astype(np.int64)}

    def collected(self, parts: Any) -> np.ndarray:
        """Return float32 [window, 2]: the best start and end."""
        best = np.zeros((len(self), 2), np.float32)
        for rows, outputs in parts:
            compared = self.targets(rows, outputs.shape[1])["compared"]
            best[rows] = np.where(compared[..., None], outputs, -np.inf).argmax(1)
        return best


def reader(seed: int) -> Any:
    config = toy_model(dropout=0).config.to_dict()  # made first: making it seeds torch
    torch.manual_seed(seed)
    return random_classifier(config, kind="span", labels=("start", "end"))


def windows() -> Windows:
    """Return windows answered from the third token to the last but one; windows with fewer than 5 tokens have no answer."""
    texts = toy_data()
    labels = np.stack([np.full(len(texts), 2), texts.lengths - 2], axis=1)
    labels[texts.lengths < 5] = 0
    return Windows(texts.input_ids, texts.token_type_ids, labels)


def right(model: Any) -> float:
    return float((predict_logits(model, windows(), 0) == windows().labels).all(1).mean())


def gradients(work: Path, micro: int | None) -> dict[str, Tensor]:
    """Return the gradients of the first step; the limit is too high for clipping to change them."""
    model, other, step_gradients = reader(1), reader(2).eval(), list[dict[str, Tensor]]()

    def teacher(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return compute_features(other, batch, ["hidden[-1]", "logits"])

    def record(optimizer: Any, arguments: Any, keywords: Any) -> None:
        step_gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})

    objective = Objective((SoftTarget(weight=2.0), HardLabel(), HiddenCosine(weight=3.0)), kind="span")
    settings = Training(max_steps=1, batch_size=8, micro_batch_size=micro, max_grad_norm=1e9)
    handle = register_optimizer_step_pre_hook(record)
    try:
        fit(model, settings, work, objective=objective, teacher=teacher, data=windows(), evaluate=right)
    finally:
        handle.remove()
    return step_gradients[0]


@pytest.mark.parametrize("micro", [1, 3])
def test_parts_add_up(tmp_path: Path, micro: int) -> None:
    whole, parts = gradients(tmp_path / "whole", None), gradients(tmp_path / "parts", micro)
    assert whole.keys() == parts.keys()
    largest = max(grad.abs().max().item() for grad in whole.values())
    for name, grad in whole.items():  # fp32 sums in another order
        torch.testing.assert_close(parts[name], grad, rtol=1e-4, atol=1e-6 * largest, msg=name)


@pytest.mark.slow
def test_a_training_finds_where_answers_are(tmp_path: Path) -> None:
    model, settings = reader(1), Training(epochs=60, batch_size=8, learning_rate=1e-2)
    assert right(model) < 0.5
    fit(model, settings, tmp_path, objective=Objective((HardLabel(),), kind="span"), data=windows(), evaluate=right)
    assert right(model) > 0.9
