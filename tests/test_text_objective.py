"""Losses on plain text: the order of segments and masked tokens, with heads separate from the student."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.hidden_mse import HiddenMse
from compress.losses.masked_lm import MaskedTokens
from compress.losses.masked_soft_target import MaskedSoftTarget
from compress.losses.segment_pairs import SentenceOrder, segment_pair_loss
from compress.models.features.named import compute_features
from compress.models.masked_head import MaskedLmHeads
from compress.models.masked_lm import copy_head, decoder, masked_lm_around, masked_text_loss
from compress.objective import Objective

FAMILIES = ("bert", "albert")
WIDTHS = (32, 48)


def batch_of(length: int = 12) -> dict[str, Tensor]:
    """Return texts of 12, 9 and 6 tokens, padded to `length`."""
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
    assert objective.means_over == {"sentence_order": "examples"}
    batch = batch_of()
    loss = terms(objective, encoder, batch)["sentence_order"]
    head = objective.heads["sentence_order"]
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    logits = head(encoder(**inputs).pooler_output)
    assert logits.shape == (3, 2)
    assert loss.item() == pytest.approx(3 * segment_pair_loss(logits, batch["sentence_order"]).item(), rel=1e-6)
    loss.backward()
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
    masked = MaskedLmHeads(model)
    objective = Objective((MaskedTokens(weight=2), SentenceOrder()), widths=WIDTHS, masked_lm=masked)
    assert objective.student_features == {"pooled", "hidden[-1]", "words"}
    assert objective.means_over == {"masked_lm": "masked_tokens", "sentence_order": "examples"}
    batch = batch_of()
    losses = terms(objective, encoder, batch)
    assert set(losses) == {"masked_lm", "sentence_order"}
    assert losses["masked_lm"].item() == pytest.approx(2 * masked_text_loss(model, batch).item(), rel=1e-5)  # fp32
    torch.stack(list(losses.values())).sum().backward()
    own, others = ({id(p) for p in module.parameters()} for module in (objective, encoder))
    assert not own & others
    assert all(parameter.grad is not None for parameter in objective.parameters())
    table = encoder.get_input_embeddings().weight
    assert table.grad[17].any()  # a token that only the decoder sees: the tables are tied


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
    with pytest.raises(ValueError, match="needs masked-LM heads"):
        Objective((MaskedTokens(),), widths=WIDTHS)
    assert not list(Objective((HiddenMse(), SentenceOrder(weight=0)), layers=((1, 1),)).parameters())


@pytest.fixture
def heads(tiny_checkpoint: Callable[[str], Path]) -> tuple[Any, Any]:
    """Return a student and its teacher, masked language models of two families with one vocabulary."""
    torch.manual_seed(4)
    student, teacher = (
        masked_lm_around(AutoModel.from_pretrained(tiny_checkpoint(family))).eval() for family in ("distilbert", "bert")
    )
    with torch.no_grad():
        for model in (student, teacher):
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return student, teacher


def triple(student: Any, teacher: Any) -> Objective:
    losses = (MaskedSoftTarget(weight=5), MaskedTokens(weight=2), HiddenCosine())
    return Objective(losses, widths=(32, 32), masked_lm=MaskedLmHeads(student, teacher))


def both(objective: Objective, student: Any, teacher: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    with torch.no_grad():  # as the loop does
        theirs = compute_features(teacher.base_model, batch, objective.teacher_features)
    mine = compute_features(student.base_model, batch, objective.student_features)
    return objective(mine, theirs, batch)


def test_the_triple_loss_is_that_of_whole_models(heads: tuple[Any, Any]):
    """Compared with transformers' logits at every position, of which only the masked ones count."""
    student, teacher = heads
    objective, batch = triple(student, teacher), batch_of()
    assert objective.student_features == {"hidden[-1]", "words"}
    assert objective.teacher_features == {"hidden[-1]"}
    masked = dict.fromkeys(("masked_soft_target", "masked_lm"), "masked_tokens")
    assert objective.means_over == masked | {"hidden_cosine": "tokens"}
    losses = both(objective, student, teacher, batch)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    with torch.no_grad():
        theirs = teacher(**inputs).logits.double()
        inputs.pop("token_type_ids")
        mine = student(**inputs).logits.double()
    total, count = 0.0, 0
    for row, place in (batch["labels"] != -100).nonzero():
        p, q = (torch.softmax(scores[row, place] / 2, -1) for scores in (theirs, mine))
        total, count = total + 4 * float((p * (p / q).log()).sum()), count + 1
    assert count == 3
    assert losses["masked_soft_target"].item() == pytest.approx(5 * total / count, rel=1e-4)  # fp32 logits
    assert losses["masked_lm"].item() == pytest.approx(2 * masked_text_loss(student, batch).item(), rel=1e-5)
    torch.stack(list(losses.values())).sum().backward()
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert all(parameter.grad is not None for parameter in objective.parameters())
    assert not {id(each) for each in objective.parameters()} & {id(each) for each in teacher.parameters()}


def test_a_student_that_is_its_teacher_has_nothing_to_learn_of_it(tiny_checkpoint: Callable[[str], Path]):
    torch.manual_seed(4)
    student, teacher = (masked_lm_around(AutoModel.from_pretrained(tiny_checkpoint("bert"))).eval() for _ in range(2))
    assert both(triple(student, teacher), student, teacher, batch_of())["masked_soft_target"].item() > 1e-4
    copy_head(teacher, student)
    losses = both(triple(student, teacher), student, teacher, batch_of())
    assert losses["masked_soft_target"].item() == 0
    assert losses["hidden_cosine"].item() == pytest.approx(0, abs=1e-6)


def test_the_vocabulary_is_scored_once_and_at_hidden_tokens_alone(heads: tuple[Any, Any]):
    student, teacher = heads
    shapes: list[tuple[int, ...]] = []
    for model in heads:
        decoder(model).register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.shape)))
    both(triple(student, teacher), student, teacher, batch_of())
    assert shapes == [(3, 120), (3, 120)]


def test_without_hidden_tokens_the_triple_loss_is_the_cosine(heads: tuple[Any, Any]):
    batch = batch_of()
    batch["labels"] = torch.full_like(batch["labels"], -100)
    losses = both(triple(*heads), *heads, batch)
    assert (losses["masked_soft_target"].item(), losses["masked_lm"].item()) == (0, 0)
    assert losses["hidden_cosine"].item() > 0


def test_the_vocabulary_is_multiplied_in_the_precision_of_the_training_and_the_losses_are_not(
    heads: tuple[Any, Any],
) -> None:
    seen: list[torch.dtype] = []
    handles = [decoder(model).register_forward_hook(lambda m, i, out: seen.append(out.dtype)) for model in heads]
    with torch.autocast("cpu", torch.bfloat16):
        losses = both(triple(*heads), *heads, batch_of())
    for handle in handles:
        handle.remove()
    assert seen == [torch.bfloat16] * 2
    assert {value.dtype for value in losses.values()} == {torch.float32}
    expected = both(triple(*heads), *heads, batch_of())
    for name, value in losses.items():
        assert value.item() == pytest.approx(expected[name].item(), rel=0.05), name
