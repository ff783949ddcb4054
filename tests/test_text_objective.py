"""What plain text teaches by itself: the order of segments and hidden tokens, with heads that are not the student's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from compress.losses import sentence_order_loss
from compress.models.features import compute_features
from compress.models.masked_head import MaskedLmObjective
from compress.models.masked_lm import masked_lm_around, masked_lm_loss
from compress.objective import Objective
from compress.spec.losses import HiddenMse, MaskedTokens, SentenceOrder

FAMILIES = ("bert", "albert")
WIDTHS = (32, 48)


def batch_of(length: int = 12) -> dict[str, Tensor]:
    """Texts of 12, 9 and 6 tokens, padded to `length`."""
    ids = torch.randint(5, 100, (3, 20), generator=torch.Generator().manual_seed(1))[:, :length]
    mask = (torch.arange(length) < torch.tensor([12, 9, 6])[:, None]).long()
    labels = torch.full_like(ids, -100)
    labels[0, 2], labels[0, 5], labels[2, 3] = 17, 30, 8
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": (torch.arange(length) > 4).long() * mask,
        "labels": labels,
        "sentence_order": torch.tensor([1, 0, 1]),
    }


@pytest.fixture(params=FAMILIES)
def encoder(request: pytest.FixtureRequest, tiny_checkpoint: Callable[[str], Path]) -> Any:
    return AutoModel.from_pretrained(tiny_checkpoint(request.param)).eval()


def terms(objective: Objective, encoder: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    return objective(compute_features(encoder, batch, objective.student_features), {}, batch)


def test_the_order_is_told_from_the_pooled_output_and_needs_no_teacher(encoder: Any):
    torch.manual_seed(0)
    objective = Objective((SentenceOrder(weight=3),), widths=WIDTHS)
    assert (objective.student_features, objective.teacher_features) == ({"pooled"}, frozenset())
    assert not objective.per_token
    batch = batch_of()
    found = terms(objective, encoder, batch)["sentence_order"]
    head = objective.heads["sentence_order"]
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    logits = head(encoder(**inputs).pooler_output)
    assert logits.shape == (3, 2)
    assert found.item() == pytest.approx(3 * sentence_order_loss(logits, batch["sentence_order"]).item(), rel=1e-6)
    found.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in head.parameters())
    assert all(
        parameter.grad is not None and parameter.grad.any()
        for name, parameter in encoder.named_parameters()
        if "pooler" in name
    )


def test_the_head_starts_small_by_the_callers_seed_and_is_not_the_encoders(encoder: Any):
    before = set(encoder.state_dict())
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        objective = Objective((SentenceOrder(),), widths=(768, 768))
        drawn.append(objective.get_parameter("heads.sentence_order.weight").detach())
        assert not objective.get_parameter("heads.sentence_order.bias").any()
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert drawn[0].std().item() == pytest.approx(0.02, rel=0.1)
    assert set(encoder.state_dict()) == before


def test_padding_does_not_change_what_is_said_of_the_order(encoder: Any):
    objective = Objective((SentenceOrder(),), widths=WIDTHS)
    plain, padded = (terms(objective, encoder, batch_of(length))["sentence_order"] for length in (12, 20))
    assert padded.item() == pytest.approx(plain.item(), rel=2e-5)  # fp32; sums of other lengths round differently


def test_masked_tokens_beside_the_order_in_one_objective(encoder: Any):
    model = masked_lm_around(encoder).eval()
    assert model.base_model is encoder
    masked = MaskedLmObjective(model)
    objective = Objective((MaskedTokens(weight=2), SentenceOrder()), widths=WIDTHS, masked_lm=masked)
    assert objective.student_features == {"pooled", "hidden[-1]"}
    assert objective.per_token == {"masked_lm"}
    batch = batch_of()
    found = terms(objective, encoder, batch)
    assert set(found) == {"masked_lm", "sentence_order"}
    assert found["masked_lm"].item() == pytest.approx(2 * masked_lm_loss(model, batch).item(), rel=1e-5)  # fp32
    torch.stack(list(found.values())).sum().backward()
    own, others = ({id(p) for p in module.parameters()} for module in (objective, encoder))
    assert not own & others
    assert all(parameter.grad is not None for parameter in objective.parameters())
    table = encoder.get_input_embeddings().weight
    assert table.grad[17].any()  # of a token that only the decoder sees: it is the same table


def test_they_stand_beside_distillation(encoder: Any):
    objective = Objective((HiddenMse(), SentenceOrder()), layers=((1, 1), (2, 2)), widths=WIDTHS)
    assert objective.student_features == {"hidden[1]", "hidden[2]", "pooled"}
    assert objective.teacher_features == {"hidden[1]", "hidden[2]"}
    assert set(objective.state_dict()) == {
        "projections.hidden_mse.weight",
        "heads.sentence_order.weight",
        "heads.sentence_order.bias",
    }


def test_a_head_that_cannot_be_made_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="needs the student's width"):
        Objective((SentenceOrder(),))
    with pytest.raises(ValueError, match="masked_lm needs a head"):
        Objective((MaskedTokens(),), widths=WIDTHS)
    assert not list(Objective((HiddenMse(), SentenceOrder(weight=0)), layers=((1, 1),)).parameters())
