"""Sentence-order and next-sentence prediction against a small NumPy version."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError
from loss_checks import grad, softmax

from compress.losses.segment_pairs import segment_pair_loss

LABELS = torch.tensor([0, 1, 1, 0, 1])


def test_it_is_the_mean_negative_log_likelihood_of_the_label():
    logits = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = -np.mean(np.log(softmax(logits.numpy())[np.arange(5), LABELS.numpy()]))
    assert segment_pair_loss(logits, LABELS).item() == pytest.approx(expected, rel=1e-12)
    gradient = grad(lambda x: segment_pair_loss(x, LABELS), logits)
    wanted = (softmax(logits.numpy()) - np.eye(2)[LABELS.numpy()]) / 5
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=0, atol=1e-15)


def test_not_to_know_costs_a_bit_and_to_know_nothing():
    assert segment_pair_loss(torch.zeros(5, 2), LABELS).item() == pytest.approx(math.log(2))
    sure = 200 * torch.nn.functional.one_hot(LABELS, 2).double()
    assert segment_pair_loss(sure, LABELS).item() == 0
    assert segment_pair_loss(sure.flip(1), LABELS).item() == pytest.approx(200)


def test_there_are_two_classes():
    with pytest.raises(TypeCheckError):
        segment_pair_loss(torch.zeros(5, 3), LABELS)
