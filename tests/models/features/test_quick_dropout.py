"""The package's dropout against its definition, and attention in training against torch's own kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from compress.models.families import FAMILIES
from compress.models.features import attention
from compress.models.features.dropout import Dropout, draw_quickly, dropout
from compress.models.features.named import compute_features

RATE = 0.1
COUNT = 200_001  # not a multiple of four: the last draw is used in part


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_zeros_are_within_the_binomial_interval_and_the_rest_is_scaled(kind: torch.dtype):
    torch.manual_seed(0)
    values = dropout(torch.ones(COUNT, dtype=kind), RATE)
    deviation = (COUNT * RATE * (1 - RATE)) ** 0.5
    assert abs(int((values == 0).sum()) - COUNT * RATE) < 4 * deviation
    rest = values[values != 0].unique()
    torch.testing.assert_close(rest, torch.tensor([1 / (1 - RATE)], dtype=kind), rtol=torch.finfo(kind).eps, atol=1e-5)


def test_neighbours_drop_independently():
    """Four elements share one draw, but are dropped independently."""
    torch.manual_seed(1)
    dropped = dropout(torch.ones(400_000), 0.5).eq(0).view(-1, 4).float()
    together = torch.corrcoef(dropped.T) - torch.eye(4)
    assert together.abs().max() < 4 / 100_000**0.5


def test_the_gradient_goes_where_the_values_went():
    torch.manual_seed(2)
    values = torch.randn(3, 5, 7, requires_grad=True)
    out = dropout(values, 0.4)
    out.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad * values.detach(), out.detach())


@pytest.mark.parametrize(("rate", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_ends_are_exact(rate: float, expected: float):
    assert dropout(torch.ones(1000), rate).unique().tolist() == [expected]


def test_a_seed_gives_the_same_draws():
    torch.manual_seed(3)
    first = dropout(torch.ones(100), 0.5)
    second = dropout(torch.ones(100), 0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(torch.ones(100), 0.5), first)
    assert not torch.equal(first, second)


def test_modules_are_replaced_and_only_draw_in_training():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.25).eval()))
    draw_quickly(model)
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert [(type(module), module.p, module.training) for module in dropouts] == [
        (Dropout, 0.5, True),
        (Dropout, 0.25, False),
    ]
    values = torch.randn(50, 4)
    assert torch.equal(dropouts[1](values), values)
    assert not torch.equal(dropouts[0](values), values)
    assert model.state_dict().keys() == {"0.weight", "0.bias"}


def batch_of(length: int) -> dict[str, Tensor]:
    ids = torch.randint(5, 100, (3, length), generator=torch.Generator().manual_seed(1))
    mask = (torch.arange(length) < torch.tensor([length, length // 2, 1])[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


def gradients(model: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    model.zero_grad()
    features = compute_features(model, batch, ["logits", "scores[0]", "hidden[-1]"])
    (features["logits"].square().sum() + features["hidden[-1]"][:, 0].square().sum()).backward()
    weight_gradients = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    return weight_gradients | {name: value.detach() for name, value in features.items()}


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie"])
def test_attention_in_training_has_the_values_and_gradients_of_torchs_kernel(
    tiny_checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, family: str
):
    model = AutoModelForSequenceClassification.from_pretrained(
        tiny_checkpoint(family), attn_implementation=FAMILIES[family].attention.implementation
    ).eval()
    monkeypatch.setattr(attention, "_is_plain_faster", lambda query, rate: True)
    ours = gradients(model, batch_of(12))
    monkeypatch.setattr(attention, "_is_plain_faster", lambda query, rate: False)
    kernel = gradients(model, batch_of(12))
    assert ours.keys() == kernel.keys()
    for name, value in kernel.items():
        torch.testing.assert_close(
            ours[name], value, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize(
    ("kind", "length", "rate", "pays"),
    [
        (torch.bfloat16, 128, 0.0, True),
        (torch.bfloat16, 129, 0.0, False),
        (torch.float32, 32, 0.0, False),
        (torch.float32, 512, 0.1, True),
    ],
)
def test_plain_products_are_taken_where_they_were_measured_to_pay(
    kind: torch.dtype, length: int, rate: float, pays: bool
):
    query = torch.zeros(1, 1, length, 8, dtype=kind, requires_grad=True)
    assert attention._is_plain_faster(query, rate) == pays
    assert not attention._is_plain_faster(query.detach(), rate)


def parts(kind: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores [2, 3, 20, 20], values [2, 3, 20, 8], and the mask of texts with 20 and 7 tokens."""
    generator = torch.Generator().manual_seed(4)
    scores, values = (
        torch.randn(2, 3, 20, width, generator=generator, dtype=torch.float64).to(kind) for width in (20, 8)
    )
    return scores, values, (torch.arange(20) < torch.tensor([[20], [7]]))[:, None, None, :]


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.01)])
def test_attention_is_the_softmax_of_the_scores_times_the_values(kind: torch.dtype, tolerance: float):
    """bf16 has eight bits: 0.4 % per rounding, of the softmax, the weights and the sum."""
    scores, values, mask = parts(kind)
    weights = torch.softmax(scores.double().masked_fill(~mask, -torch.inf), dim=-1)
    expected = (weights @ values.double()).transpose(1, 2)
    actual = attention._plain_attention(scores, values, mask, 0.0).double()
    assert float((actual - expected).norm() / expected.norm()) < tolerance


def test_dropped_attention_weights_are_zero_and_the_rest_scaled_after_softmax():
    scores, _, mask = parts(torch.float32)
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    torch.manual_seed(6)
    actual = attention._plain_attention(scores, torch.eye(20).expand(2, 3, 20, 20), mask, 0.5).transpose(1, 2)
    kept = actual != 0
    torch.testing.assert_close(actual[kept], 2 * weights[kept])
    share = kept[weights > 0].float().mean().item()
    assert abs(share - 0.5) < 4 * (0.25 / int((weights > 0).sum())) ** 0.5


def test_attention_drops_its_weights_in_training(tiny_checkpoint: Callable[[str], Path]):
    model: Any = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("bert"), attn_implementation="sdpa")
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.5 if name.endswith("attention.self.dropout") else 0.0
    batch, other = batch_of(12), "hidden[-1]"
    still = compute_features(model.eval(), batch, [other])[other]
    moved = compute_features(model.train(), batch, [other])[other]
    assert not torch.allclose(still, moved)
    torch.testing.assert_close(compute_features(model.eval(), batch, [other])[other], still, rtol=0, atol=0)
