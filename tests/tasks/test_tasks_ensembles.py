"""The temperature with the lowest negative log-likelihood, and the mean of calibrated probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from compress.losses.soft_target import soft_target_loss
from compress.tasks import TASK_KINDS, divide_by_temperature
from compress.tasks.ensembles import (
    HIGHEST,
    LOWEST,
    fit_temperature,
    mean_of_probabilities,
    mean_of_scores,
)


def answers(seed: int, *, classes: int = 3, scale: float = 2.0, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 logits of 200 examples, and their labels; `noise` sets how often the logits are right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=200)
    logits = scale * (np.eye(classes)[labels] + noise * rng.standard_normal((200, classes)))
    return logits.astype(np.float32), labels


def nll(temperature: float, logits: np.ndarray, labels: np.ndarray) -> float:
    """Compute it by torch, in float64."""
    scaled = torch.from_numpy(logits).double() / temperature
    return float(torch.nn.functional.cross_entropy(scaled, torch.from_numpy(labels)))


@pytest.mark.parametrize(
    ("seed", "scale", "noise", "classes"), [(0, 2.0, 1.0, 3), (1, 9.0, 0.8, 2), (2, 0.3, 0.6, 5), (3, 4.0, 1.5, 4)]
)
def test_temperature_is_that_of_an_independent_minimiser(seed: int, scale: float, noise: float, classes: int):
    logits, labels = answers(seed, classes=classes, scale=scale, noise=noise)
    minimum: Any = minimize_scalar(
        lambda log: nll(np.exp(log), logits, labels),
        bounds=(np.log(LOWEST), np.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    temperature = fit_temperature(logits, labels)
    assert LOWEST < temperature < HIGHEST
    # A minimum is flat: if its values agree to 1e-16, its locations agree to about 1e-8.
    assert np.log(temperature) == pytest.approx(minimum.x, abs=1e-6)
    assert nll(temperature, logits, labels) <= minimum.fun + 1e-12


def test_an_overconfident_teacher_is_softened_and_a_timid_one_sharpened():
    logits, labels = answers(4)
    temperature = fit_temperature(logits, labels)
    assert fit_temperature(5 * logits, labels) == pytest.approx(5 * temperature, rel=1e-6)
    assert fit_temperature(logits / 5, labels) == pytest.approx(temperature / 5, rel=1e-6)


def test_where_no_temperature_is_best_it_is_one_and_elsewhere_within_its_bounds():
    logits, labels = answers(5, noise=0.01)
    assert (logits.argmax(1) == labels).all()
    assert fit_temperature(logits, labels) == 1.0  # smaller temperatures are always likelier
    assert fit_temperature(-logits, labels) == HIGHEST  # worse than chance: flattened as far as possible
    wrong = labels.copy()
    wrong[0] = (labels[0] + 1) % 3
    assert fit_temperature(logits / 1000, wrong) == LOWEST


def test_one_teacher_twice_is_that_teacher_to_the_bit():
    logits, labels = answers(6)
    calibrated = divide_by_temperature(logits, fit_temperature(logits, labels))
    alone, twice = mean_of_probabilities([calibrated]), mean_of_probabilities([calibrated, calibrated])
    np.testing.assert_array_equal(alone, log_softmax(calibrated, axis=1))
    np.testing.assert_array_equal(twice.astype(np.float32), alone.astype(np.float32))


def test_softmax_of_the_result_is_the_mean_of_the_probabilities():
    several = [answers(seed, scale=20.0 * seed + 1)[0] for seed in range(3)]
    mean = np.mean([torch.softmax(torch.from_numpy(one).double(), dim=1).numpy() for one in several], axis=0)
    logits = mean_of_probabilities(several)
    np.testing.assert_allclose(torch.softmax(torch.from_numpy(logits), dim=1).numpy(), mean, rtol=1e-12, atol=0)
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1, rtol=1e-12)


def test_the_order_of_teachers_is_none_of_the_means():
    one, other = answers(7)[0], answers(8)[0]
    np.testing.assert_array_equal(mean_of_probabilities([one, other]), mean_of_probabilities([other, one]))


def test_a_student_that_has_the_mean_has_learnt_it_at_any_temperature():
    target = torch.from_numpy(mean_of_probabilities([answers(seed)[0] for seed in range(2)])).float()
    student = target + 5.0  # only differences of logits matter
    for temperature in (1.0, 2.0, 8.0):
        loss = soft_target_loss(student, target, temperature=temperature)
        assert float(loss) == pytest.approx(0, abs=1e-5)  # fp32, times T²
    assert float(soft_target_loss(target.flip(1), target, temperature=2.0)) > 0.01


def test_certain_teachers_that_disagree_stay_finite():
    far = np.array([[1e4, -1e4], [0.0, 1e5]], dtype=np.float32)
    mean = mean_of_probabilities([far, far[:, ::-1]])
    assert np.isfinite(mean).all()
    np.testing.assert_allclose(np.exp(mean), 0.5)


def test_scores_are_averaged_as_they_are():
    one, other = np.array([[1.0], [4.0]], dtype=np.float32), np.array([[2.0], [0.0]], dtype=np.float32)
    np.testing.assert_array_equal(
        mean_of_scores([divide_by_temperature(one, None), divide_by_temperature(other, None)]), [[1.5], [2.0]]
    )
    ensemble = TASK_KINDS["regression"].ensemble
    assert ensemble is not None
    assert ensemble.fit_temperature is None
    assert ensemble.mean is mean_of_scores
