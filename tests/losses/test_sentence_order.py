"""Sentence-order and next-sentence prediction against a small NumPy version."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError
from loss_checks import grad, softmax

from compress.losses.next_sentence import next_sentence_loss
from compress.losses.sentence_order import sentence_order_loss

SWAPPED = torch.tensor([0, 1, 1, 0, 1])
BOTH = pytest.mark.parametrize("loss", [sentence_order_loss, next_sentence_loss], ids=["order", "next"])


@BOTH
def test_it_is_the_mean_negative_log_likelihood_of_the_label(loss):
    logits = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = -np.mean(np.log(softmax(logits.numpy())[np.arange(5), SWAPPED.numpy()]))
    assert loss(logits, SWAPPED).item() == pytest.approx(expected, rel=1e-12)
    found = grad(lambda x: loss(x, SWAPPED), logits)
    wanted = (softmax(logits.numpy()) - np.eye(2)[SWAPPED.numpy()]) / 5
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=1e-15)


@BOTH
def test_not_to_know_costs_a_bit_and_to_know_nothing(loss):
    assert loss(torch.zeros(5, 2), SWAPPED).item() == pytest.approx(math.log(2))
    sure = 200 * torch.nn.functional.one_hot(SWAPPED, 2).double()
    assert loss(sure, SWAPPED).item() == 0
    assert loss(sure.flip(1), SWAPPED).item() == pytest.approx(200)


@BOTH
def test_there_are_two_classes(loss):
    with pytest.raises(TypeCheckError):
        loss(torch.zeros(5, 3), SWAPPED)
