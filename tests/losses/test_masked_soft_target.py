"""Soft targets of masked tokens: the divergence at each of them, and zero without any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from loss_checks import grad, softmax

from compress.errors import CompressError
from compress.losses.masked_soft_target import MaskedSoftTarget, masked_soft_target_loss
from compress.models.dimensions import dimensions, read_config
from compress.models.layer_maps import check_losses


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(3)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 8.0])
def test_it_is_the_scaled_divergence_position_by_position(temperature: float):
    student, teacher = torch.randn(2, 5, 40, dtype=torch.float64)
    p, q = softmax(teacher.numpy() / temperature), softmax(student.numpy() / temperature)
    expected = temperature**2 * np.mean([np.sum(p[i] * np.log(p[i] / q[i])) for i in range(5)])
    loss = masked_soft_target_loss(student, teacher, temperature=temperature)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_it_is_zero_where_both_say_the_same():
    scores = torch.randn(6, 40)
    assert masked_soft_target_loss(scores, scores, temperature=2.0).item() == 0
    assert not grad(lambda x: masked_soft_target_loss(x, scores, temperature=2.0), scores).abs().max() > 1e-7  # fp32
    assert masked_soft_target_loss(scores.flip(1), scores, temperature=2.0).item() > 0.1


def test_the_gradient_keeps_its_size_as_the_temperature_grows():
    """Hinton et al. 2015, eq. 4: for high T the gradient approaches (student - teacher) / words, independent of T."""
    student, teacher = torch.randn(2, 6, 40, dtype=torch.float64)
    student, teacher = (x - x.mean(-1, keepdim=True) for x in (student, teacher))
    limit = (student - teacher) / 40 / 6  # words, then the mean over positions
    for temperature in (100.0, 1000.0):
        gradient = grad(lambda x, t=temperature: masked_soft_target_loss(x, teacher, temperature=t), student)
        assert torch.allclose(gradient, limit, rtol=0, atol=3 / temperature * limit.abs().max().item())


def test_without_hidden_tokens_it_is_zero_and_has_a_gradient():
    nothing = torch.zeros(0, 40, requires_grad=True)
    loss = masked_soft_target_loss(nothing, torch.zeros(0, 40), temperature=2.0)
    loss.backward()
    assert loss.item() == 0
    assert nothing.grad is not None


def test_vocabularies_of_different_sizes_are_refused(tiny_checkpoint: Callable[[str], Path]):
    sizes = dimensions(read_config(tiny_checkpoint("bert")), classes=0)
    wider = replace(sizes, vocabulary=sizes.vocabulary + 8)
    losses = (MaskedSoftTarget(),)
    check_losses(losses, student=sizes, teacher=sizes, where="here")
    with pytest.raises(CompressError, match=r"here: masked_soft_target .*: the student has 128, the teacher 120"):
        check_losses(losses, student=wider, teacher=sizes, where="here")
    check_losses((MaskedSoftTarget(weight=0),), student=wider, teacher=sizes, where="here")
