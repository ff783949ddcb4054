"""Losses for multi-label classification, against explicit sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from compress.losses.bernoulli import bernoulli_cross_entropy_loss, bernoulli_kl_loss
from compress.losses.features import LOGITS
from compress.losses.hard_label import HardLabel
from compress.losses.loss import LossSpec
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget
from compress.objective import Objective
from compress.tasks.ensembles import mean_of_decisions
from compress.tasks.kinds import TASK_KINDS

STUDENT, TEACHER = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
GOLD = torch.tensor([[1, 0, 0, 1]] * 3 + [[0, 1, 0, 0]] * 4, dtype=torch.uint8)


def shares(logits: torch.Tensor, temperature: float = 1.0) -> np.ndarray:
    return 1 / (1 + np.exp(-logits.numpy() / temperature))


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_kl_is_the_mean_over_labels_and_texts(temperature: float) -> None:
    p, q = shares(TEACHER, temperature), shares(STUDENT, temperature)
    expected = temperature**2 * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean()
    loss = bernoulli_kl_loss(STUDENT, TEACHER, temperature=temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-9)


def test_kl_of_a_model_with_itself_is_zero_with_a_zero_gradient() -> None:
    student = (40 * TEACHER).requires_grad_()
    loss = bernoulli_kl_loss(student, 40 * TEACHER, temperature=2.0)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0, abs=1e-12)
    assert student.grad is not None and float(student.grad.abs().max()) == pytest.approx(0, abs=1e-12)


def test_cross_entropy_takes_gold_labels_as_whole_numbers() -> None:
    q = shares(STUDENT)
    expected = -np.where(GOLD.numpy() > 0, np.log(q), np.log(1 - q)).mean()
    assert float(bernoulli_cross_entropy_loss(STUDENT, GOLD)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (HardLabel(), lambda: float(bernoulli_cross_entropy_loss(STUDENT, GOLD))),
        (SoftTarget(temperature=2.0), lambda: float(bernoulli_kl_loss(STUDENT, TEACHER, temperature=2.0))),
        (
            SoftCrossEntropy(temperature=3.0),
            lambda: float(bernoulli_cross_entropy_loss(STUDENT / 3, (TEACHER / 3).sigmoid())),
        ),
    ],
)
def test_a_recipes_losses_are_those_of_the_kind(loss: LossSpec, expected: object) -> None:
    objective = Objective([loss], kind="multilabel")
    (actual,) = objective({LOGITS: STUDENT}, {LOGITS: TEACHER}, {"labels": GOLD}).values()
    assert float(actual) == pytest.approx(expected(), rel=1e-5)  # type: ignore[operator]  # computed in fp32


def test_several_teachers_are_the_mean_of_their_probabilities() -> None:
    mean = mean_of_decisions([STUDENT.numpy(), 30 * TEACHER.numpy()])
    assert 1 / (1 + np.exp(-mean)) == pytest.approx((shares(STUDENT) + shares(30 * TEACHER)) / 2)


def test_a_temperature_calibrates_all_labels_together() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(4000, 3)) * 2
    labels = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.uint8)
    ensemble = TASK_KINDS["multilabel"].ensemble
    assert ensemble is not None and ensemble.fit_temperature is not None
    assert ensemble.fit_temperature(3 * logits, labels) == pytest.approx(3, rel=0.1)
