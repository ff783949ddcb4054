"""A toy task that a tiny BERT learns in seconds: the label is the more frequent of two words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from compress.losses.hard_label import HardLabel
from compress.models.cards import RandomInit
from compress.models.features.named import Features
from compress.models.random_models import random_classifier, random_config
from compress.objective import Objective
from compress.spec.stages import Training
from compress.tasks import Encoded, TaskBatches
from compress.training import Outcome, StepReport, make_accelerator, train

GOOD, BAD, OTHER = 10, 11, 12


def toy_data(examples: int = 28, seed: int = 0) -> Encoded:
    """Return texts of 3 to 11 tokens with labels 0 and 1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, examples)
    texts = [
        np.where(rng.random(length) < 0.6, BAD if label else GOOD, OTHER)
        for length, label in zip(rng.integers(1, 10, examples), labels, strict=True)
    ]
    ids = [
        np.concatenate([[2], [BAD if label else GOOD], text, [3]]) for text, label in zip(texts, labels, strict=True)
    ]
    return Encoded([row.astype(np.int32) for row in ids], [np.zeros(len(row), np.int8) for row in ids], labels)


def toy_model(dropout: float = 0.1, seed: int = 1) -> Any:
    init = RandomInit(layers=2, hidden=16, heads=2, intermediate=32, vocabulary=13, max_positions=16, dropout=dropout)
    torch.manual_seed(seed)
    return random_classifier(random_config(init), kind="classification", labels=("good", "bad"))


def weights(*modules: nn.Module) -> dict[str, torch.Tensor]:
    return {
        f"{index}.{name}": tensor.detach().clone()
        for index, module in enumerate(modules)
        for name, tensor in module.state_dict().items()
    }


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def classifier_bias(model: nn.Module) -> float:
    """Return a score that any change of the weights changes."""
    return model.get_parameter("classifier.bias")[0].item()


def fit(
    model: nn.Module,
    settings: Training,
    work: Path,
    *,
    data: Encoded | None = None,
    objective: Objective | None = None,
    evaluate: Callable[[nn.Module], float] = classifier_bias,
    on_step: Callable[[StepReport], None] = lambda report: None,
    on_notice: Callable[[str], None] = lambda line: None,
    teacher: Any = None,
    checkpoint_seconds: float = 1e9,
    precision: str = "fp32",
    split: bool = False,
    conditions: dict[str, Any] | None = None,
) -> Outcome:
    """Run `train` on the toy."""
    return train(
        model,
        objective or Objective((HardLabel(),)),
        TaskBatches(data or toy_data(), batch_size=settings.batch_size, pad_id=0, seed=5),
        settings,
        accelerator=make_accelerator(precision),
        teacher=teacher or (lambda batch, indices: {}),
        evaluate=evaluate,
        work=work,
        on_step=on_step,
        on_notice=on_notice,
        checkpoint_seconds=checkpoint_seconds,
        sharded=split,
        conditions=conditions,
    )


class Projected(Objective):
    """Trains a projection that reads the labels from the hidden states, beside the usual loss."""

    def __init__(self) -> None:
        super().__init__((HardLabel(),))
        torch.manual_seed(9)
        self.projection = nn.Linear(16, 2)
        self.steps = nn.Buffer(torch.zeros((), dtype=torch.int64))
        self.student_features = frozenset({"logits", "hidden[-1]"})

    def forward(self, student: Features, teacher: Features, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        self.steps += 1
        read = self.projection(student["hidden[-1]"][:, 0])
        terms = super().forward(student, teacher, batch)
        return {**terms, "read": nn.functional.cross_entropy(read, batch["labels"])}
