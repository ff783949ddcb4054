"""The losses of TinyBERT and MiniLM v2 against independent NumPy versions, and their invariance to padding and scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError
from loss_checks import MASK, REAL, Loss, extended, grad, softmax, spoiled
from torch import Tensor

from compress.losses.attention_mse import attention_mse_loss
from compress.losses.hidden_mse import hidden_mse_loss
from compress.losses.relation_kl import relation_kl_loss
from compress.losses.soft_cross_entropy import soft_cross_entropy_loss


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


def relations_of(heads: int) -> Loss:
    return lambda student, teacher, mask: relation_kl_loss(student, teacher, mask, heads=heads)


def hidden(width: int = 8) -> Tensor:
    return torch.randn(3, 5, width, dtype=torch.float64)


def scores() -> Tensor:
    return torch.randn(3, 4, 5, 5, dtype=torch.float64)


def vectors(heads: int = 4, size: int = 6) -> Tensor:
    return torch.randn(3, heads, 5, size, dtype=torch.float64)


MASKED: dict[str, tuple[Loss, Callable[[], Tensor], tuple[int, ...]]] = {  # loss, its input, the token axes
    "hidden_mse": (hidden_mse_loss, hidden, (1,)),
    "attention_mse": (attention_mse_loss, scores, (2, 3)),
    "relation_kl": (relations_of(3), vectors, (2,)),
}
masked = pytest.mark.parametrize("name", list(MASKED))


def test_hidden_mse_is_the_mean_over_real_tokens_and_features():
    student, teacher = hidden(), hidden()
    one, other = student.numpy(), teacher.numpy()
    squares = [np.mean((one[b, i] - other[b, i]) ** 2) for b, tokens in REAL for i in range(tokens)]
    assert hidden_mse_loss(student, teacher, MASK).item() == pytest.approx(np.mean(squares), rel=1e-12)


def test_attention_mse_is_the_mean_over_the_pairs_of_an_example_and_then_over_examples():
    student, teacher = scores(), scores()
    one, other = student.numpy(), teacher.numpy()
    examples = [np.mean((one[b, :, :n, :n] - other[b, :, :n, :n]) ** 2) for b, n in REAL]
    assert attention_mse_loss(student, teacher, MASK).item() == pytest.approx(np.mean(examples), rel=1e-12)


def relation_reference(student: np.ndarray, teacher: np.ndarray, heads: int) -> float:
    """Return the mean divergence, computed one text, one query and one relation head at a time."""
    rows = []
    for example, tokens in REAL:
        for head in range(heads):
            p, q = (softmax(relation(x[example, :, :tokens], head, heads)) for x in (teacher, student))
            rows += list(np.sum(p * np.log(p / q), axis=-1))
    return float(np.mean(rows))


def relation(vectors: np.ndarray, head: int, heads: int) -> np.ndarray:
    """Return the scaled self-products [tokens, tokens] of one relation head, a slice of the joined heads [heads, tokens,
    size]."""
    joined = np.concatenate(list(vectors), axis=-1)
    width = joined.shape[-1] // heads
    own = joined[:, head * width : (head + 1) * width]
    return own @ own.T / np.sqrt(width)


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_relation_kl_is_the_divergence_of_the_resplit_relations(heads: int):
    """Student and teacher have different numbers of heads and widths."""
    student, teacher = vectors(heads=2, size=12), vectors(heads=4, size=10)
    expected = relation_reference(student.numpy(), teacher.numpy(), heads)
    assert relation_kl_loss(student, teacher, MASK, heads=heads).item() == pytest.approx(expected, rel=1e-11)
    other_way = relation_kl_loss(teacher, student, MASK, heads=heads).item()
    assert other_way != pytest.approx(expected, rel=1e-3)


def test_relation_kl_does_not_see_how_a_model_splits_its_heads():
    student, teacher = vectors(heads=2, size=12), vectors(heads=4, size=6)
    joined = student.transpose(1, 2).reshape(3, 5, 6, 4).transpose(1, 2)
    losses = [relation_kl_loss(x, teacher, MASK, heads=3).item() for x in (student, joined)]
    assert losses[0] == losses[1]


@masked
def test_the_loss_is_zero_for_a_student_that_is_the_teacher(name: str):
    loss, make, _ = MASKED[name]
    values = make()
    assert loss(values, values, MASK).item() == 0
    assert not grad(lambda x: loss(x, values.clone(), MASK), values).abs().gt(1e-16).any()
    assert loss(make(), values, MASK).item() > 0.01


@masked
def test_padding_neither_changes_the_loss_nor_gets_a_gradient(name: str):
    loss, make, axes = MASKED[name]
    student, teacher = make(), make()
    value = loss(student, teacher, MASK).item()
    assert loss(spoiled(student, axes), spoiled(teacher, axes), MASK).item() == pytest.approx(value, rel=1e-13)
    longer = torch.cat([MASK, torch.zeros(3, 4, dtype=MASK.dtype)], dim=1)
    assert loss(extended(student, axes), extended(teacher, axes), longer).item() == pytest.approx(value, rel=1e-13)
    gradient = grad(lambda x: loss(x, teacher, MASK), student)
    padding = spoiled(torch.zeros_like(student), axes) != 0
    assert padding.any()
    assert not gradient[padding].any()


@masked
def test_a_mask_without_a_real_token_gives_zero_and_no_gradient(name: str):
    loss, make, _ = MASKED[name]
    student, teacher = make(), make()
    nothing = torch.zeros_like(MASK)
    assert loss(student, teacher, nothing).item() == 0
    assert not grad(lambda x: loss(x, teacher, nothing), student).any()


@masked
def test_the_loss_does_not_grow_with_a_batch_of_the_same(name: str):
    loss, make, _ = MASKED[name]
    student, teacher = make(), make()
    twice = [torch.cat([x, x]) for x in (student, teacher, MASK)]
    assert loss(*twice).item() == pytest.approx(loss(student, teacher, MASK).item(), rel=1e-13)


def test_the_gradient_of_the_squared_errors_is_twice_the_difference_over_what_is_counted():
    student, teacher = hidden(), hidden()
    gradient = grad(lambda x: hidden_mse_loss(x, teacher, MASK), student)
    torch.testing.assert_close(gradient, 2 * (student - teacher) * MASK[..., None] / (9 * 8), rtol=1e-12, atol=0)
    student, teacher = scores(), scores()
    gradient = grad(lambda x: attention_mse_loss(x, teacher, MASK), student)
    for example, tokens in REAL:
        real = (example, slice(None), slice(tokens), slice(tokens))
        expected = 2 * (student - teacher)[real] / (4 * tokens**2) / 3
        torch.testing.assert_close(gradient[real], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_soft_cross_entropy_is_the_expected_code_length(temperature: float):
    student, teacher = torch.randn(2, 5, 3, dtype=torch.float64)
    p, q = softmax(teacher.numpy() / temperature), softmax(student.numpy() / temperature)
    expected = -np.mean(np.sum(p * np.log(q), axis=-1))
    assert soft_cross_entropy_loss(student, teacher, temperature=temperature).item() == pytest.approx(
        expected, rel=1e-12
    )


def test_soft_cross_entropy_at_the_teacher_is_its_entropy_and_has_no_gradient():
    teacher = torch.randn(5, 3, dtype=torch.float64)
    p = softmax(teacher.numpy())
    entropy = -np.mean(np.sum(p * np.log(p), axis=-1))
    assert soft_cross_entropy_loss(teacher, teacher, temperature=1.0).item() == pytest.approx(entropy, rel=1e-12)
    shifted = teacher + 7.0  # softmax is invariant to a constant
    assert grad(lambda x: soft_cross_entropy_loss(x, teacher, temperature=1.0), shifted).abs().max() < 1e-15
    for other in torch.randn(20, 5, 3, dtype=torch.float64):
        assert soft_cross_entropy_loss(other, teacher, temperature=1.0).item() > entropy


def test_soft_cross_entropy_has_the_gradient_of_the_divergence():
    student, teacher = torch.randn(2, 5, 3, dtype=torch.float64)
    gradient = grad(lambda x: soft_cross_entropy_loss(x, teacher, temperature=2.0), student)
    expected = (softmax(student.numpy() / 2) - softmax(teacher.numpy() / 2)) / 2 / 5  # no T²: it shrinks with T
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-12, atol=1e-17)


@pytest.mark.parametrize(
    "call",
    [
        lambda: hidden_mse_loss(torch.zeros(3, 5, 4), torch.zeros(3, 5, 6), MASK),
        lambda: hidden_mse_loss(torch.zeros(3, 5, 4), torch.zeros(3, 5, 4), MASK[:, :4]),
        lambda: attention_mse_loss(torch.zeros(3, 2, 5, 5), torch.zeros(3, 4, 5, 5), MASK),
        lambda: attention_mse_loss(torch.zeros(3, 2, 5, 4), torch.zeros(3, 2, 5, 4), MASK),
        lambda: relation_kl_loss(torch.zeros(3, 2, 5, 4), torch.zeros(3, 2, 6, 4), MASK, heads=2),
        lambda: relation_kl_loss(torch.zeros(3, 5, 4), torch.zeros(3, 5, 4), MASK, heads=2),
        lambda: soft_cross_entropy_loss(torch.zeros(2, 3), torch.zeros(2, 4), temperature=1.0),
    ],
)
def test_a_tensor_of_another_shape_is_refused(call: Callable[[], Tensor]):
    with pytest.raises(TypeCheckError):
        call()
