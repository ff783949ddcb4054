"""Objectives over matched layers: which features they read, how layers are summed, and the projections that they own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compress.errors import CompressError
from compress.losses.attention_mse import AttentionMse, attention_mse_loss
from compress.losses.embedding_mse import EmbeddingMse
from compress.losses.hidden_mse import HiddenMse, hidden_mse_loss
from compress.losses.relation_kl import RelationKl, relation_kl_loss
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.objective import Objective

LAYERS = ((1, 2), (2, 4), (3, 6))
WIDTHS = (8, 12)
TINYBERT = (EmbeddingMse(weight=3), HiddenMse(weight=0.5), AttentionMse(weight=2))


@pytest.fixture
def batch() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {"attention_mask": torch.tensor([[1] * 5, [1] * 4 + [0], [1, 1, 0, 0, 0]])}


def features(names: frozenset[str], width: int, heads: int) -> dict[str, Tensor]:
    shapes = {"h": (3, 5, width), "e": (3, 5, width), "s": (3, heads, 5, 5), "l": (3, 2)}
    vectors = (3, heads, 5, width // heads)
    return {name: torch.randn(shapes.get(name[0], vectors) if name[:2] != "ke" else vectors) for name in sorted(names)}


def both(objective: Objective, heads: tuple[int, int] = (4, 4)) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    student = features(objective.student_features, WIDTHS[0], heads[0])
    return student, features(objective.teacher_features, WIDTHS[1], heads[1])


def test_the_features_of_tinybert_are_those_of_matched_layers_and_no_logits():
    objective = Objective(TINYBERT, layers=LAYERS, widths=WIDTHS)
    assert objective.student_features == {
        "embeddings", "hidden[1]", "hidden[2]", "hidden[3]", "scores[0]", "scores[1]", "scores[2]",
    }  # fmt: skip
    assert objective.teacher_features == {
        "embeddings", "hidden[2]", "hidden[4]", "hidden[6]", "scores[1]", "scores[3]", "scores[5]",
    }  # fmt: skip
    assert objective.means_over == {"attention_mse": "examples", "embedding_mse": "tokens", "hidden_mse": "tokens"}


def test_layers_add_up_and_one_projection_serves_them_all(batch: dict[str, Tensor]):
    objective = Objective(TINYBERT, layers=LAYERS, widths=WIDTHS)
    student, teacher = both(objective)
    weights = {name: parameter.detach().T for name, parameter in objective.named_parameters()}
    assert {name: tuple(weight.shape) for name, weight in weights.items()} == {
        "projections.embedding_mse.weight": WIDTHS,
        "projections.hidden_mse.weight": WIDTHS,
    }
    mask = batch["attention_mask"]
    expected = {
        "embedding_mse": 3 * hidden_mse_loss(
            student["embeddings"] @ weights["projections.embedding_mse.weight"], teacher["embeddings"], mask
        ),
        "hidden_mse": 0.5 * torch.stack([
            hidden_mse_loss(
                student[f"hidden[{mine}]"] @ weights["projections.hidden_mse.weight"], teacher[f"hidden[{theirs}]"], mask
            )
            for mine, theirs in LAYERS
        ]).sum(),
        "attention_mse": 2 * torch.stack([
            attention_mse_loss(student[f"scores[{mine - 1}]"], teacher[f"scores[{theirs - 1}]"], mask)
            for mine, theirs in LAYERS
        ]).sum(),
    }  # fmt: skip
    losses = objective(student, teacher, batch)
    assert {name: term.item() for name, term in losses.items()} == pytest.approx(
        {name: term.item() for name, term in expected.items()}, rel=1e-6
    )


def test_projections_learn_and_come_only_where_widths_differ(batch: dict[str, Tensor]):
    objective = Objective(TINYBERT, layers=LAYERS, widths=WIDTHS)
    student, teacher = both(objective)
    torch.stack(list(objective(student, teacher, batch).values())).sum().backward()
    for parameter in objective.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().min() > 0
    for same in (Objective(TINYBERT, layers=LAYERS, widths=(12, 12)), Objective(TINYBERT, layers=LAYERS)):
        assert not list(same.parameters())
    assert not list(Objective((AttentionMse(), RelationKl()), layers=LAYERS, widths=WIDTHS).parameters())
    assert len(list(Objective((HiddenMse(), EmbeddingMse(weight=0)), layers=LAYERS, widths=WIDTHS).parameters())) == 1


def test_projections_begin_as_the_callers_seed_says():
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        objective = Objective(TINYBERT, layers=LAYERS, widths=(312, 384))
        drawn.append(torch.cat([parameter.flatten() for parameter in objective.parameters()]))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert drawn[0].std().item() == pytest.approx(0.02, rel=0.02)


def test_relations_are_of_the_last_layers_with_the_teachers_heads(batch: dict[str, Tensor]):
    objective = Objective((RelationKl(weight=6),), layers=LAYERS, widths=WIDTHS)
    names = {"queries[-1]", "keys[-1]", "values[-1]"}
    assert objective.student_features == objective.teacher_features == names
    assert objective.means_over == {"relation_kl": "tokens"}
    student, teacher = both(objective, heads=(2, 4))
    losses = [relation_kl_loss(student[name], teacher[name], batch["attention_mask"], heads=4).item() for name in names]
    assert objective(student, teacher, batch)["relation_kl"].item() == pytest.approx(6 * sum(losses) / 3, rel=1e-6)


def test_relations_of_the_layers_heads_and_kinds_that_are_named(batch: dict[str, Tensor]):
    spec = RelationKl(relations=("values",), heads=2, teacher_layer=21, student_layer=3)
    objective = Objective((spec,))
    assert (objective.student_features, objective.teacher_features) == ({"values[2]"}, {"values[20]"})
    student, teacher = both(objective)
    expected = relation_kl_loss(student["values[2]"], teacher["values[20]"], batch["attention_mask"], heads=2)
    assert objective(student, teacher, batch)["relation_kl"].item() == expected.item()


@pytest.mark.parametrize("loss", [HiddenMse(), AttentionMse()])
def test_losses_of_matched_layers_need_some(loss: Any):
    with pytest.raises(CompressError, match=f"losses: {loss.name} needs matched layers; found none"):
        Objective((SoftCrossEntropy(), loss))


def test_autocast_leaves_the_losses_in_fp32(batch: dict[str, Tensor]):
    objective = Objective((*TINYBERT, RelationKl()), layers=LAYERS, widths=WIDTHS)
    student, teacher = both(objective)
    plain = objective(student, teacher, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = objective(student, teacher, batch)
    assert all(mixed[name].dtype == torch.float32 and torch.equal(mixed[name], plain[name]) for name in plain)
