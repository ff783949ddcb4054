"""Losses over the passages of each query in a batch, against loops over the queries."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from compress.losses.hard_label import HardLabel, hard_label_loss
from compress.losses.listwise import (
    listwise_cross_entropy_loss,
    listwise_kl_loss,
    listwise_soft_cross_entropy_loss,
    margin_mse_loss,
)
from compress.losses.margin_mse import MarginMse
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget, soft_target_loss
from compress.objective import Objective

GROUPS = torch.tensor([7, 7, 7, 2, 2, 5, 9, 9, 9, 9])
RELEVANCE = torch.tensor([1.0, 0, 0, 2, 1, 1, 0, 0, 0, 0])
EVERY = [[0, 1, 2], [3, 4], [5], [6, 7, 8, 9]]
RELEVANT = EVERY[:3]


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """In float64 only rounding differs between orders of summation."""
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def scores(seed: int) -> Tensor:
    return 3 * torch.randn(10, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_the_kl_is_that_of_the_passages_of_each_query():
    student, teacher = scores(0), scores(1)
    each = [soft_target_loss(student[None, rows], teacher[None, rows], temperature=2.0) for rows in EVERY]
    loss = listwise_kl_loss(student, teacher, GROUPS, temperature=2.0)
    assert_same(loss, torch.stack(each).mean())


def test_a_constant_beside_all_scores_of_a_query_costs_nothing():
    teacher = scores(2)
    moved = teacher + torch.tensor([5.0, -1.0, 3.0]).double()[torch.tensor([0, 0, 0, 1, 1, 2, 0, 0, 0, 0])]
    assert listwise_kl_loss(moved, teacher, GROUPS, temperature=1.5).abs() < 1e-12
    assert margin_mse_loss(moved, teacher, RELEVANCE.double(), GROUPS).abs() < 1e-12


def test_the_soft_cross_entropy_is_the_kl_and_the_teachers_entropy():
    student, teacher = scores(3), scores(4)
    entropy = listwise_soft_cross_entropy_loss(teacher, teacher, GROUPS, temperature=1.0)
    loss = listwise_soft_cross_entropy_loss(student, teacher, GROUPS, temperature=1.0)
    assert_same(loss - entropy, listwise_kl_loss(student, teacher, GROUPS, temperature=1.0))


def test_of_one_relevant_passage_the_loss_is_its_cross_entropy():
    student = scores(5)
    each = [hard_label_loss(student[None, rows], torch.tensor([0])) for rows in ([0, 1, 2], [5])]
    graded = -(torch.tensor([2, 1]).double() / 3 * student[[3, 4]].log_softmax(0)).sum()
    loss = listwise_cross_entropy_loss(student, RELEVANCE.double(), GROUPS)
    assert_same(loss, torch.stack([*each, graded]).mean())


def test_nothing_relevant_costs_nothing_and_has_no_gradient():
    student = scores(6).requires_grad_()
    listwise_cross_entropy_loss(student, torch.zeros(10).double(), GROUPS).backward()
    assert student.grad is not None and not student.grad.any()
    assert margin_mse_loss(student, scores(7), torch.zeros(10).double(), GROUPS) == 0


def test_the_margins_are_those_of_all_pairs_of_other_relevance():
    student, teacher = scores(8), scores(9)
    pairs = [(0, 1), (0, 2), (3, 4)]
    each = [((student[i] - student[j]) - (teacher[i] - teacher[j])) ** 2 for i, j in pairs]
    loss = margin_mse_loss(student, teacher, RELEVANCE.double(), GROUPS)
    assert_same(loss, torch.stack(each).mean())


def test_scores_far_apart_stay_finite():
    student = torch.tensor([1e4, -1e4, 0.0] + [0.0] * 7, requires_grad=True)
    listwise_cross_entropy_loss(student, RELEVANCE, GROUPS).backward()
    assert student.grad is not None and student.grad.isfinite().all()


@pytest.mark.parametrize(
    "spec", [HardLabel(), SoftTarget(), SoftCrossEntropy(), MarginMse()], ids=lambda spec: spec.name
)
def test_an_objective_of_ranking_takes_the_losses_of_lists(spec: HardLabel):
    student, teacher = scores(10).float(), scores(11).float()
    objective = Objective([spec], kind="ranking")
    batch = {"labels": RELEVANCE, "groups": GROUPS}
    (loss,) = objective({"logits": student[:, None]}, {"logits": teacher[:, None]}, batch).values()
    expected = {
        "hard_label": listwise_cross_entropy_loss(student, RELEVANCE, GROUPS),
        "soft_target": listwise_kl_loss(student, teacher, GROUPS, temperature=2.0),
        "soft_cross_entropy": listwise_soft_cross_entropy_loss(student, teacher, GROUPS, temperature=1.0),
        "margin_mse": margin_mse_loss(student, teacher, RELEVANCE, GROUPS),
    }
    torch.testing.assert_close(loss, expected[spec.name])
