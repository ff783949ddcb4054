"""Losses on sentence embeddings: against explicit sums, and where they are zero."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from compress.losses.sentence_cosine import sentence_cosine_loss
from compress.losses.similarity_mse import SimilarityMse, similarity_mse_loss
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget
from compress.objective import Objective


def vectors(width: int, seed: int = 0, rows: int = 5) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def test_cosine_loss_is_the_mean_over_texts() -> None:
    student, teacher = vectors(7), vectors(7, seed=1)
    expected = np.mean([1 - cosine(one.numpy(), two.numpy()) for one, two in zip(student, teacher, strict=True)])
    assert float(sentence_cosine_loss(student, teacher)) == pytest.approx(expected, abs=1e-12)


def test_similarity_loss_is_the_mean_over_pairs_of_texts_of_any_widths() -> None:
    student, teacher = vectors(7), vectors(4, seed=1)
    gaps = [
        (cosine(student[i].numpy(), student[j].numpy()) - cosine(teacher[i].numpy(), teacher[j].numpy())) ** 2
        for i in range(5)
        for j in range(5)
    ]
    assert float(similarity_mse_loss(student, teacher)) == pytest.approx(np.mean(gaps), abs=1e-12)


def test_pairs_of_texts_in_different_forwards_are_not_compared() -> None:
    first, second = vectors(6), vectors(6, seed=1)
    turned = second @ torch.linalg.qr(vectors(6, seed=3, rows=6))[0]
    parts = [(first, first), (turned, second), (turned[:1], first[:1])]
    assert [float(similarity_mse_loss(*part)) for part in parts] == pytest.approx([0, 0, 0], abs=1e-12)
    assert float(similarity_mse_loss(torch.cat([first, turned]), torch.cat([first, second]))) > 0.01


def test_both_are_zero_where_directions_agree_whatever_the_lengths() -> None:
    teacher = vectors(6)
    student = teacher * torch.tensor([[0.5], [1], [2], [3], [9]])
    turned = student @ torch.linalg.qr(vectors(6, seed=3, rows=6))[0]  # a rotation keeps all cosines
    assert float(sentence_cosine_loss(student, teacher)) == pytest.approx(0, abs=1e-12)
    assert float(similarity_mse_loss(turned, teacher)) == pytest.approx(0, abs=1e-12)
    assert float(sentence_cosine_loss(turned, teacher)) > 0.1


def test_soft_losses_are_cosines_for_tasks_of_vectors() -> None:
    student, teacher = vectors(6).float(), vectors(6, seed=1).float()
    expected = float(sentence_cosine_loss(student, teacher))
    for loss in (SoftTarget(weight=2.0), SoftCrossEntropy(weight=2.0)):
        objective = Objective((loss,), kind="embedding")
        terms = objective({"logits": student}, {"logits": teacher}, {})
        assert float(terms[loss.name]) == pytest.approx(2 * expected, abs=1e-6)  # fp32


def test_an_objective_has_the_loss_of_similarities() -> None:
    student, teacher = vectors(6).float(), vectors(4, seed=1).float()
    terms = Objective((SimilarityMse(weight=3.0),), kind="embedding")({"logits": student}, {"logits": teacher}, {})
    assert float(terms["similarity_mse"]) == pytest.approx(3 * float(similarity_mse_loss(student, teacher)), abs=1e-6)


def test_steps_along_the_gradient_bring_vectors_to_the_teacher_s() -> None:
    student, teacher = vectors(6).float().requires_grad_(), vectors(6, seed=1).float()
    optimizer = torch.optim.Adam([student], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        sentence_cosine_loss(student, teacher).backward()
        optimizer.step()
    assert float(sentence_cosine_loss(student.detach(), teacher)) < 1e-3
