"""How far an ALBERT's blocks are from one another, and making one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from albert_toys import bert, blocks, card, converted, partial, sizes, text
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from compress.losses import block_spread_loss
from compress.models.blocks import spread, tie
from compress.models.features import compute_features
from compress.models.students import untied_card
from compress.models.students.albert import student_config
from compress.models.students.modules import array
from compress.objective import Objective
from compress.spec.losses import BlockSpread


@pytest.fixture
def untied() -> Any:
    """A block for each of four layers, all different."""
    return converted(untied_card(card()), bert())


def expected(model: Any, groups: int) -> float:
    """An independent number: every group, every tensor, in NumPy."""
    found = [{name: array(p) for name, p in block.named_parameters()} for block in blocks(model)]
    terms = []
    for run in np.array_split(np.arange(len(found)), groups):
        for name in found[0]:
            tensors = np.stack([found[layer][name] for layer in run])
            terms.append(((tensors - tensors.mean(0)) ** 2).sum() / (tensors**2).sum())
    return float(np.mean(terms))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_spread_is_an_independent_number_between_0_and_1(untied: Any, groups: int):
    found = spread(untied, groups).item()
    np.testing.assert_allclose(found, expected(untied, groups), rtol=1e-5, atol=1e-9)  # fp32 sums
    assert found == 0 if groups == 4 else 0 < found < 1


def test_blocks_that_are_the_same_have_none():
    alike = converted(untied_card(card()), bert(alike=True))
    assert spread(alike, 1).item() < 1e-12  # fp32: the mean of four equal numbers may round


def test_the_most_that_sharing_can_lose_is_everything():
    opposite = torch.randn(6)
    assert float(block_spread_loss(torch.stack([opposite, -opposite]))) == pytest.approx(1)
    assert float(block_spread_loss(torch.randn(5, 40))) < 1
    assert float(block_spread_loss(torch.zeros(3, 4))) == 0  # as biases are at the start


def test_the_gradient_points_to_the_mean_and_nowhere_else():
    """Opposite to block - mean, block by block: no block is made smaller, and the mean stays."""
    tensors = torch.randn(4, 30, requires_grad=True)
    block_spread_loss(tensors).backward()
    assert tensors.grad is not None
    away = (tensors - tensors.mean(0)).detach()
    torch.testing.assert_close(tensors.grad, 2 * away / tensors.detach().square().sum(), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(tensors.grad.sum(0), torch.zeros(30), rtol=0, atol=1e-6)


def test_the_objective_pulls_the_blocks_together_without_text_or_teacher(untied: Any):
    objective = Objective([BlockSpread(groups=2, weight=3.0)])
    assert objective.teacher_features == frozenset()
    calls: list[int] = []
    untied.register_forward_hook(lambda *call: calls.append(1))

    def value() -> Tensor:
        return objective(compute_features(untied, text(), objective.student_features), {}, text())["block_spread"]

    first = value().item()
    assert first == pytest.approx(3 * expected(untied, 2), rel=1e-5)
    assert not calls  # it reads weights alone: no forward is made for it
    optimizer = torch.optim.SGD(untied.parameters(), lr=10.0)
    for _ in range(10):
        optimizer.zero_grad()
        value().backward()
        optimizer.step()
    assert value().item() < 0.7 * first


def empty(student: Any, model: Any) -> Any:
    torch.manual_seed(5)
    config = student_config(model.config, sizes(student, bert()))
    return AutoModelForSequenceClassification.from_config(config).eval()


@pytest.mark.parametrize("groups", [1, 2])
def test_tying_takes_the_mean_of_the_blocks_and_everything_else(untied: Any, groups: int):
    into = empty(card(groups=groups), untied)
    tie(untied, into)
    for number, block in enumerate(blocks(into)):
        run = blocks(untied)[number * 4 // groups : (number + 1) * 4 // groups]
        for name, parameter in block.named_parameters():
            wanted = torch.stack([dict(each.named_parameters())[name].double() for each in run]).mean(0)
            assert torch.equal(parameter, wanted.float()), name
    mine, theirs = into.state_dict(), untied.state_dict()
    rest = [name for name in theirs if "albert_layer_groups" not in name]
    assert len(rest) == 11  # three tables, LayerNorm, mapping, pooler, classifier: their weights and biases
    assert all(torch.equal(mine[name], theirs[name]) for name in rest)


def test_tying_half_a_block_leaves_the_other_half_to_each_layer(untied: Any):
    into = empty(partial("attention"), untied)
    tie(untied, into)
    first = blocks(into)[0].attention.query.weight
    wanted = torch.stack([block.attention.query.weight.double() for block in blocks(untied)]).mean(0)
    assert torch.equal(first, wanted.float())
    assert all(block.attention.query.weight is first for block in blocks(into))
    for mine, theirs in zip(blocks(into), blocks(untied), strict=True):
        assert torch.equal(mine.ffn.weight, theirs.ffn.weight)


def test_tying_blocks_without_spread_changes_no_answer():
    alike = converted(untied_card(card()), bert(alike=True))
    into = empty(card(), alike)
    tie(alike, into)
    with torch.no_grad():
        torch.testing.assert_close(into(**text()).logits, alike(**text()).logits, rtol=0, atol=1e-6)  # the mean rounds
