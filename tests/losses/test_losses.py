"""Losses against independent NumPy versions, and the properties that the papers promise."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError
from loss_checks import grad, softmax
from torch import Tensor

from compress import losses
from compress.losses import LOSSES, Loss
from compress.losses.features import LOGITS, POOLED, TOKEN_SCORES, parse
from compress.losses.hard_label import hard_label_loss
from compress.losses.hidden_cosine import hidden_cosine_loss
from compress.losses.soft_target import soft_target_loss
from compress.losses.squared_error import squared_error_loss


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(3)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 8.0])
def test_soft_target_is_the_scaled_divergence(temperature: float):
    student, teacher = torch.randn(2, 5, 3, dtype=torch.float64)
    p, q = softmax(teacher.numpy() / temperature), softmax(student.numpy() / temperature)
    expected = temperature**2 * np.mean(np.sum(p * np.log(p / q), axis=-1))
    assert soft_target_loss(student, teacher, temperature=temperature).item() == pytest.approx(expected, rel=1e-12)


def test_soft_target_is_zero_where_the_distributions_agree():
    logits = torch.randn(4, 3)
    shifted = logits + 7.0  # softmax is invariant to a constant
    assert soft_target_loss(logits, logits, temperature=2.0).item() == 0
    assert soft_target_loss(shifted, logits, temperature=2.0).item() == pytest.approx(0, abs=1e-6)
    assert soft_target_loss(logits.flip(1), logits, temperature=2.0).item() > 0.1


def test_soft_target_minimises_towards_the_teacher_and_not_the_other_way_round():
    student, teacher = torch.tensor([[0.0, 0.0]]), torch.tensor([[20.0, -20.0]])
    assert soft_target_loss(student, teacher, temperature=1.0).item() == pytest.approx(np.log(2))
    assert soft_target_loss(teacher, student, temperature=1.0).item() == pytest.approx(20 - np.log(2))


def test_soft_target_gradient_keeps_its_size_as_the_temperature_grows():
    """Hinton et al. 2015, eq. 4: for high T the gradient approaches (student - teacher) / classes, independent of T."""
    student, teacher = torch.randn(2, 6, 4, dtype=torch.float64)
    student, teacher = (x - x.mean(-1, keepdim=True) for x in (student, teacher))
    limit = (student - teacher) / 4 / 6  # classes, then the mean over the batch
    for temperature in (100.0, 1000.0):
        gradient = grad(lambda x, t=temperature: soft_target_loss(x, teacher, temperature=t), student)
        assert torch.allclose(gradient, limit, rtol=0, atol=2 / temperature * limit.abs().max().item())
    sizes = [
        grad(lambda x, t=t: soft_target_loss(x, teacher, temperature=t), student).norm().item() for t in (2.0, 8.0)
    ]
    assert 0.5 < sizes[0] / sizes[1] < 2  # without T² it would be about 16


def test_hard_label_is_the_negative_log_likelihood():
    logits, labels = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 2, 1, 1, 0])
    expected = -np.mean(np.log(softmax(logits.numpy())[np.arange(5), labels.numpy()]))
    assert hard_label_loss(logits, labels).item() == pytest.approx(expected, rel=1e-12)
    sure = 200 * torch.nn.functional.one_hot(labels, 3).double()
    assert hard_label_loss(sure, labels).item() == 0


def test_squared_error_is_the_mean_square():
    score, target = torch.randn(7, 1, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    expected = np.mean((score.numpy()[:, 0] - target.numpy()) ** 2)
    assert squared_error_loss(score, target).item() == pytest.approx(expected, rel=1e-12)
    assert squared_error_loss(score, score[:, 0]).item() == 0
    assert torch.allclose(grad(lambda x: squared_error_loss(x, target), score)[:, 0], 2 * (score[:, 0] - target) / 7)


def hidden_batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    student, teacher = torch.randn(2, 3, 5, 8, dtype=dtype)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    return student, teacher, mask


def test_hidden_cosine_is_the_mean_over_real_tokens():
    student, teacher, mask = hidden_batch()
    one, other = student.numpy(), teacher.numpy()
    cosines = [
        np.dot(one[b, i], other[b, i]) / np.linalg.norm(one[b, i]) / np.linalg.norm(other[b, i])
        for b, i in np.argwhere(mask.numpy())
    ]
    assert len(cosines) == 9
    assert hidden_cosine_loss(student, teacher, mask).item() == pytest.approx(1 - np.mean(cosines), rel=1e-12)


def test_hidden_cosine_sees_direction_alone():
    student, _, mask = hidden_batch()
    assert hidden_cosine_loss(student, student, mask).item() == pytest.approx(0, abs=1e-12)
    assert hidden_cosine_loss(3 * student, student, mask).item() == pytest.approx(0, abs=1e-12)
    assert hidden_cosine_loss(-student, student, mask).item() == pytest.approx(2, abs=1e-12)


def test_padding_never_changes_hidden_cosine_nor_gets_a_gradient():
    student, teacher, mask = hidden_batch()
    value = hidden_cosine_loss(student, teacher, mask)
    padded = (mask == 0)[..., None]
    spoiled = [torch.where(padded, 1e6 * torch.randn_like(x), x) for x in (student, teacher)]
    assert hidden_cosine_loss(spoiled[0], spoiled[1], mask).item() == value.item()
    longer = [torch.cat([x, torch.randn(3, 4, 8, dtype=x.dtype)], dim=1) for x in (student, teacher)]
    zeros = torch.zeros(3, 4, dtype=mask.dtype)
    extended = hidden_cosine_loss(longer[0], longer[1], torch.cat([mask, zeros], dim=1))
    assert extended.item() == pytest.approx(value.item(), rel=1e-14)  # sums of other lengths round differently
    gradient = grad(lambda x: hidden_cosine_loss(x, teacher, mask), student)
    assert torch.equal(gradient.ne(0).any(-1), mask.bool())


def test_a_mask_without_a_real_token_gives_zero_and_no_gradient():
    student, teacher, mask = hidden_batch()
    nothing = torch.zeros_like(mask)
    assert hidden_cosine_loss(student, teacher, nothing).item() == 0
    assert not grad(lambda x: hidden_cosine_loss(x, teacher, nothing), student).any()


@pytest.mark.parametrize(
    "call",
    [
        lambda: soft_target_loss(torch.zeros(2, 3), torch.zeros(2, 4), temperature=1.0),
        lambda: soft_target_loss(torch.zeros(2, 3), torch.zeros(1, 3), temperature=1.0),
        lambda: hard_label_loss(torch.zeros(2, 3), torch.zeros(3, dtype=torch.int64)),
        lambda: hard_label_loss(torch.zeros(2, 3), torch.zeros(2)),
        lambda: hidden_cosine_loss(torch.zeros(2, 3, 4), torch.zeros(2, 3, 5), torch.ones(2, 3, dtype=torch.int64)),
        lambda: hidden_cosine_loss(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.ones(3, 2, dtype=torch.int64)),
        lambda: squared_error_loss(torch.zeros(4), torch.zeros(4)),
        lambda: squared_error_loss(torch.zeros(4, 2), torch.zeros(4)),
    ],
)
def test_a_tensor_of_another_shape_or_type_is_refused(call: Callable[[], Tensor]):
    with pytest.raises(TypeCheckError):
        call()


def test_every_loss_is_registered_under_the_name_that_recipes_give_it():
    modules = [import_module(f"{losses.__name__}.{each.name}") for each in iter_modules(losses.__path__)]
    names = {value.name for module in modules for value in vars(module).values() if isinstance(value, Loss)}
    assert set(LOSSES) == names
    assert all(loss.name == name == loss.spec().name for name, loss in LOSSES.items())


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_compares_features_that_are_known(name: str):
    loss = LOSSES[name]
    compared = [feature for pair in loss.compares(loss.spec(), ((1, 2),)) for feature in pair if feature is not None]
    own = {"logits": {LOGITS}, "masked_tokens": {TOKEN_SCORES}, "segment_pairs": {POOLED}}.get(loss.reads)
    assert compared
    assert all(feature == TOKEN_SCORES or parse(feature, 6) for feature in compared)
    assert own is None or set(compared) == own


@pytest.mark.parametrize(
    ("name", "matches_layers", "of_text", "needs_teacher"),
    [
        ("hidden_mse", True, False, True),
        ("attention_mse", True, False, True),
        ("relation_kl", False, False, True),
        ("soft_target", False, False, True),
        ("hard_label", False, False, False),
        ("sentence_order", False, True, False),
        ("next_sentence", False, True, False),
        ("masked_lm", False, True, False),
        ("masked_soft_target", False, True, True),
    ],
)
def test_what_losses_ask_of_their_stage(name: str, matches_layers: bool, of_text: bool, needs_teacher: bool):
    loss = LOSSES[name]
    assert (loss.matches_layers, loss.of_text, loss.needs_teacher) == (matches_layers, of_text, needs_teacher)
