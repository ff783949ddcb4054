"""Packed documents do not attend to each other: in every family, feature, and loss that compares pairs of tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from default_suite import covering
from torch import Tensor
from transformers import AutoConfig, AutoModel

from compress.losses.attention_mse import AttentionMse, attention_mse_loss
from compress.losses.embedding_mse import EmbeddingMse
from compress.losses.features import ATTENTION as KINDS
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.hidden_mse import HiddenMse
from compress.losses.relation_kl import RelationKl, relation_kl_loss
from compress.models.features.named import compute_features, model_inputs
from compress.models.masked_lm import masked_lm_around, masked_text_loss
from compress.objective import Objective

FAMILIES = (
    "bert",
    "distilbert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "electra",
    "albert",
    "mpnet",
    "ernie",
    "modernbert",
)
SIZES = (7, 5, 9)  # tokens of each document in a sequence, with [CLS] and [SEP]
LENGTH, LAYERS = sum(SIZES), 2
DOCUMENTS = torch.tensor([number for number, size in enumerate(SIZES) for _ in range(size)])
FEATURES = ("embeddings", "hidden[1]", "hidden[-1]", *(f"{kind}[{layer}]" for kind in KINDS for layer in range(LAYERS)))
every_family = pytest.mark.parametrize("family", FAMILIES)


def encoder(family: str, seed: int = 7) -> Any:
    """Return an encoder with two layers, every weight far enough from 0 to matter, and dropout."""
    size: dict[str, Any] = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 2}
    size |= {"intermediate_size": 64, "max_position_embeddings": 24, "pad_token_id": 0}
    if family == "distilbert":
        size = {"vocab_size": 120, "dim": 32, "n_layers": LAYERS, "n_heads": 2, "hidden_dim": 64} | {
            "max_position_embeddings": 24
        }
    elif family == "modernbert":  # the second layer is local: 3 tokens before and after, fewer than a document has
        size |= {"local_attention": 6, **dict.fromkeys(("bos_token_id", "cls_token_id"), 1)}
        size |= dict.fromkeys(("eos_token_id", "sep_token_id"), 2)
    elif family == "mpnet":
        size |= {"pad_token_id": 1, "max_position_embeddings": 26}
    elif family == "ernie":
        size |= {"use_task_id": True}
    elif "bert" in family and family != "bert" and "albert" not in family:  # RoBERTa's positions start at 2
        size |= {"pad_token_id": 1, "max_position_embeddings": 26, "type_vocab_size": 1}
    elif "albert" in family or family == "electra":
        size |= {"embedding_size": 16}
    torch.manual_seed(seed)
    model = AutoModel.from_config(AutoConfig.for_model(family, **size))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def own(number: int) -> Tensor:
    """Return bool [length]: the tokens of a document."""
    return DOCUMENTS.eq(number)


def packed(changed: int | None = None) -> dict[str, Tensor]:
    """Return two sequences of three documents each; the words of document `changed` are replaced."""
    ids = torch.randint(5, 100, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    if changed is not None:
        others = torch.randint(5, 100, (2, LENGTH), generator=torch.Generator().manual_seed(2))
        ids = torch.where(own(changed), others, ids)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "documents": DOCUMENTS.repeat(2, 1),
    }


def alone(number: int) -> dict[str, Tensor]:
    batch = packed()
    return {name: batch[name][:, own(number)] for name in batch if name != "documents"}


def of_document(feature: str, value: Tensor, number: int) -> Tensor:
    """Return the part of a feature that belongs to the document; of scores, those between its tokens."""
    chosen = own(number)
    if feature.startswith(("scores", "weights")):
        return value[:, :, chosen][..., chosen]
    return value[:, :, chosen] if value.ndim == 4 else value[:, chosen]


@pytest.mark.parametrize(
    ("family", "changed", "how"),
    covering(FAMILIES, [(changed, how) for how in ("train", "eval", "train bf16") for changed in range(len(SIZES))]),
)
def test_other_words_next_door_change_no_bit_of_a_document(family: str, how: str, changed: int):
    """With torch's kernel, and with the explicit products in which a CPU trains, with dropout."""
    model = encoder(family).train("train" in how)
    features = []
    for batch in (packed(), packed(changed)):
        torch.manual_seed(3)
        with torch.set_grad_enabled("train" in how), torch.autocast("cpu", torch.bfloat16, enabled="bf16" in how):
            features.append(compute_features(model, batch, FEATURES))
    for number in range(len(SIZES)):
        same = [torch.equal(*(of_document(name, part[name], number) for part in features)) for name in FEATURES]
        assert any(same) == all(same) == (number != changed)


@every_family
def test_without_documents_they_do_see_each_other(family: str):
    model, batches = encoder(family), [packed(), packed(1)]
    states = []
    for batch in batches:
        del batch["documents"]
        states.append(compute_features(model, batch, ["hidden[-1]"])["hidden[-1]"])
    assert not torch.equal(*(state[:, : SIZES[0]] for state in states))


@every_family
def test_a_document_in_a_pack_is_what_it_is_alone(family: str):
    model = encoder(family)
    pack = compute_features(model, packed(), FEATURES)
    for number in range(len(SIZES)):
        features = compute_features(model, alone(number), FEATURES)
        for name in FEATURES:  # fp32; sums of other lengths round differently
            torch.testing.assert_close(of_document(name, pack[name], number), features[name], rtol=1e-4, atol=1e-5)
    if family not in ("distilbert", "electra", "modernbert"):  # these have no pooler
        pooled = [compute_features(model, batch, ["pooled"])["pooled"] for batch in (packed(), alone(0))]
        torch.testing.assert_close(*pooled, rtol=1e-4, atol=1e-5)


@every_family
@pytest.mark.parametrize("bf16", [False, True])
def test_a_document_has_no_gradient_with_respect_to_another(family: str, bf16: bool):
    model = encoder(family).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        features = compute_features(model, packed(), ["embeddings", "hidden[-1]", "values[-1]"])
    for number in range(len(SIZES)):
        parts = [of_document(name, features[name], number).square().sum() for name in ("hidden[-1]", "values[-1]")]
        (gradient,) = torch.autograd.grad(sum(parts, torch.zeros(())), features["embeddings"], retain_graph=True)
        assert gradient[:, own(number)].any()
        assert not gradient[:, ~own(number)].any()


PER_TOKEN = (HiddenCosine(), EmbeddingMse(), HiddenMse(), RelationKl(heads=2))
BY_SIZE = {loss.name: 1 for loss in PER_TOKEN} | {"attention_mse": 2}  # the mean over tokens, or over pairs of them


@pytest.mark.parametrize(
    ("family", "loss"),
    covering(FAMILIES, [AttentionMse(), *PER_TOKEN]),
    ids=lambda value: getattr(value, "name", value),
)
def test_a_loss_over_a_pack_is_that_of_its_documents(family: str, loss: Any):
    """Token losses weigh documents by tokens, the loss of scores by pairs of tokens. The teacher attends as the student does."""
    teacher, student = encoder(family), encoder(family, seed=8)
    objective = Objective((loss,), layers=((1, 2), (2, 1)), widths=(32, 32))

    def value(batch: dict[str, Tensor]) -> float:
        with torch.no_grad():
            targets = compute_features(teacher, batch, objective.teacher_features)
            features = compute_features(student, batch, objective.student_features)
        return objective(features, targets, batch)[loss.name].item()

    weights = [size ** BY_SIZE[loss.name] for size in SIZES]
    expected = sum(weight * value(alone(number)) for number, weight in enumerate(weights)) / sum(weights)
    actual = value(packed())
    assert actual > 1e-5
    assert actual == pytest.approx(expected, rel=2e-5)  # fp32; sums of other lengths round differently
    whole = packed()
    del whole["documents"]
    places = family != "modernbert" or loss.name != "embedding_mse"  # ModernBERT's embeddings have no positions
    assert (value(whole) != pytest.approx(expected, rel=2e-4)) == places


@every_family
def test_the_loss_of_hidden_tokens_is_that_of_the_documents(family: str):
    model = masked_lm_around(encoder(family)).eval()
    labels = torch.full((2, LENGTH), -100)
    labels[0, 2], labels[0, 9], labels[1, 15], labels[1, 20] = 17, 30, 8, 40
    sums = []
    for number in range(len(SIZES)):
        batch = alone(number) | {"labels": labels[:, own(number)]}
        sums.append(masked_text_loss(model, batch).item() * int((batch["labels"] >= 0).sum()))
    loss = masked_text_loss(model, packed() | {"labels": labels}).item()
    assert loss == pytest.approx(sum(sums) / 4, rel=1e-5)  # fp32


@pytest.mark.parametrize("loss", [attention_mse_loss, lambda *tensors: relation_kl_loss(*tensors, heads=2)])
def test_one_document_is_to_the_bit_what_no_documents_are_and_padding_may_be_one(loss: Any):
    one, other = torch.randn(2, 2, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])
    plain = loss(one, other, mask)
    assert torch.equal(loss(one, other, mask, torch.zeros_like(mask)), plain)
    assert torch.equal(loss(one, other, mask, 1 - mask), plain)
    assert not torch.equal(loss(one, other, mask, torch.tensor([[0, 0, 1, 1, 2, 2]]).repeat(2, 1)), plain)


@every_family
def test_positions_begin_anew_where_the_family_begins_to_count(family: str):
    inputs: dict[str, Any] = model_inputs(encoder(family), packed())
    first = 2 if family in ("roberta", "xlm-roberta", "camembert", "mpnet") else 0
    assert inputs["position_ids"][1].tolist() == [first + place for size in SIZES for place in range(size)]
    seen = inputs["attention_mask"]
    if family == "modernbert":  # one mask for each kind of layer
        places = torch.arange(LENGTH)
        near = (places[:, None] - places).abs() <= 3
        assert torch.equal(seen["sliding_attention"], seen["full_attention"] & near)
        assert not near[DOCUMENTS[:, None] == DOCUMENTS].all()
        seen = seen["full_attention"]
    assert seen.shape == (2, 1, LENGTH, LENGTH)
    if family == "mpnet":  # MPNet adds the mask to its scores
        assert seen.unique().tolist() == [torch.finfo(torch.float32).min, 0.0]
        seen = seen == 0
    assert seen.dtype == torch.bool
    assert seen[0, 0].sum() == sum(size**2 for size in SIZES)
