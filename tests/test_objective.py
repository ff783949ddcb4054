"""Loss specs become weighted, named terms, and request only the features that they read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compress.errors import CompressError
from compress.losses.hard_label import HardLabel, hard_label_loss
from compress.losses.hidden_cosine import HiddenCosine, hidden_cosine_loss
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget, soft_target_loss
from compress.objective import Objective


@pytest.fixture
def features() -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
    torch.manual_seed(0)
    student, teacher = ({"logits": torch.randn(4, 3), "hidden[-1]": torch.randn(4, 5, 8)} for _ in range(2))
    mask = torch.tensor([[1] * 5, [1] * 4 + [0], [1] * 3 + [0] * 2, [1, 1, 0, 0, 0]])
    return student, teacher, {"labels": torch.tensor([0, 2, 1, 1]), "attention_mask": mask}


def test_the_terms_of_distilbert_with_their_weights(features: Any):
    student, teacher, batch = features
    objective = Objective((SoftTarget(weight=5, temperature=2), HardLabel(weight=2), HiddenCosine(weight=0.5)))
    assert objective.student_features == objective.teacher_features == {"logits", "hidden[-1]"}
    assert objective.means_over == {"soft_target": "examples", "hard_label": "examples", "hidden_cosine": "tokens"}
    terms = objective(student, teacher, batch)
    cosine = hidden_cosine_loss(student["hidden[-1]"], teacher["hidden[-1]"], batch["attention_mask"])
    expected = {
        "soft_target": 5 * soft_target_loss(student["logits"], teacher["logits"], temperature=2.0).item(),
        "hard_label": 2 * hard_label_loss(student["logits"], batch["labels"]).item(),
        "hidden_cosine": 0.5 * cosine.item(),
    }
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(expected, rel=1e-6)  # fp32


def test_labels_alone_need_no_teacher_and_soft_targets_only_its_logits(features: Any):
    student, _, batch = features
    alone = Objective((HardLabel(),))
    assert (alone.student_features, alone.teacher_features) == ({"logits"}, frozenset())
    assert alone(student, {}, batch)["hard_label"].item() == hard_label_loss(student["logits"], batch["labels"]).item()
    assert Objective((SoftTarget(), HardLabel())).teacher_features == {"logits"}


def test_a_term_of_weight_zero_costs_nothing(features: Any):
    student, teacher, batch = features
    objective = Objective((HardLabel(), HiddenCosine(weight=0)))
    assert objective.teacher_features == frozenset()
    assert set(objective(student, teacher, batch)) == {"hard_label"}


@pytest.mark.parametrize(
    ("losses", "pattern"),
    [
        ((), r"\[\]"),
        ((HardLabel(weight=0),), r"\[\]"),
        ((SoftTarget(), SoftTarget(temperature=4)), "'soft_target', 'soft_"),
    ],
)
def test_no_loss_at_all_and_the_same_one_twice_are_refused(losses: Any, pattern: str):
    with pytest.raises(CompressError, match=f"losses: expected different ones, at least one .*found .*{pattern}"):
        Objective(losses)


def test_regression_compares_scores(features: Any):
    score, goal = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [2.5]])
    batch = {"labels": torch.tensor([0.0, 2.0])}
    terms = Objective((SoftTarget(weight=2), HardLabel()), kind="regression")(
        {"logits": score}, {"logits": goal}, batch
    )
    assert terms["soft_target"].item() == pytest.approx(2 * (2.0**2 + 0.5**2) / 2)
    assert terms["hard_label"].item() == pytest.approx((1.0**2 + 0) / 2)
    gold = Objective((SoftCrossEntropy(weight=2),), kind="regression")({"logits": score}, {"logits": goal}, batch)
    assert gold["soft_cross_entropy"].item() == pytest.approx(2 * (1.0**2 + 0) / 2)


def test_losses_are_computed_in_fp32(features: Any):
    student, teacher, batch = features
    half = {name: tensor.bfloat16() for name, tensor in student.items()}
    terms = Objective((SoftTarget(), HardLabel(), HiddenCosine()))(half, teacher, batch)
    assert {term.dtype for term in terms.values()} == {torch.float32}
    wide = hard_label_loss(half["logits"].float(), batch["labels"])
    assert terms["hard_label"].item() == wide.item()
