"""Masked-LM heads: the loss equals the whole model's, though computed beside its encoder, and what it trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from compress.losses.masked_lm import MaskedTokens
from compress.models.features.named import compute_features
from compress.models.masked_head import MaskedLmHeads
from compress.models.masked_lm import masked_text_loss, new_masked_lm_head
from compress.objective import Objective

FAMILIES = ("bert", "distilbert", "roberta", "albert", "mpnet", "ernie")


def objective_of(model: Any) -> Objective:
    return Objective((MaskedTokens(),), masked_lm=MaskedLmHeads(model))


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, tiny_checkpoint: Callable[[str], Path]) -> Any:
    torch.manual_seed(0)
    return new_masked_lm_head(tiny_checkpoint(request.param)).eval()


def batch(masked: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(5, 60, (3, 10), generator=torch.Generator().manual_seed(1))
    labels = torch.full_like(ids, -100)
    labels.view(-1)[: 5 * masked : 5] = 7
    mask = torch.ones_like(ids)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids), "labels": labels}


def test_the_loss_is_that_of_the_whole_model(model: Any):
    objective, data = objective_of(model), batch(6)
    features = compute_features(model.base_model, data, objective.student_features)
    (name, loss), *rest = objective(features, {}, data).items()
    assert (name, rest) == ("masked_lm", [])
    assert objective.means_over == {name: "masked_tokens"}
    scores = model(**{key: data[key] for key in ("input_ids", "attention_mask")}).logits[data["labels"] != -100]
    whole = torch.nn.functional.cross_entropy(scores, torch.full((6,), 7))
    assert loss.item() == pytest.approx(whole.item(), rel=1e-5)  # fp32, other shapes of the same products
    assert masked_text_loss(model, data).item() == pytest.approx(whole.item(), rel=1e-5)


def test_it_owns_the_head_and_not_the_encoder_nor_the_table(model: Any):
    objective, data = objective_of(model), batch(6)
    own, encoder = ({id(p) for p in module.parameters()} for module in (objective, model.base_model))
    assert own
    assert not own & encoder
    assert own | encoder == {id(parameter) for parameter in model.parameters()}
    features = compute_features(model.base_model, data, objective.student_features)
    objective(features, {}, data)["masked_lm"].backward()
    assert all(parameter.grad is not None for parameter in objective.parameters())


def test_a_batch_without_masked_tokens_costs_nothing(model: Any):
    objective, data = objective_of(model), batch(0)
    features = compute_features(model.base_model, data, objective.student_features)
    assert objective(features, {}, data)["masked_lm"].item() == 0


def test_a_decoder_of_its_own_is_what_scores_and_trains():
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model: Any = BertForMaskedLM(config).eval()
    objective, data = objective_of(model), batch(6)
    features = compute_features(model.base_model, data, objective.student_features)
    loss = objective(features, {}, data)["masked_lm"]
    assert loss.item() == pytest.approx(masked_text_loss(model, data).item(), rel=1e-5)  # fp32
    loss.backward()
    assert model.cls.predictions.decoder.weight.grad.any()
