"""Features by name, and nothing is computed that was not requested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier
from compress.models.features.named import accepted_inputs, compute_features
from compress.models.features.predict import predict_logits
from compress.tasks import Encoded

LABELS = ("no", "maybe", "yes")


def batch_of(batch: int, length: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(5, 100, (batch, length), generator=torch.Generator().manual_seed(1))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": (torch.arange(length) > 3).long().expand(batch, -1),
        "labels": torch.zeros(batch, dtype=torch.int64),
    }


@pytest.fixture
def bert(tiny_checkpoint: Callable[[str], Path]) -> Any:
    return load_classifier(tiny_checkpoint("bert"), kind="classification", labels=LABELS, trained=True).eval()


def test_hidden_states_are_counted_from_the_embeddings_and_from_the_end(bert: Any):
    names = ("hidden[0]", "hidden[2]", "hidden[-1]", "logits")
    features = compute_features(bert, batch_of(2, 7), names)
    assert set(features) == set(names)
    assert features["logits"].shape == (2, 3)
    assert features["hidden[0]"].shape == (2, 7, 32)
    assert torch.equal(features["hidden[2]"], features["hidden[-1]"])
    batch = batch_of(2, 7)
    embedded = bert.bert.embeddings(batch["input_ids"], batch["token_type_ids"])
    assert torch.equal(features["hidden[0]"], embedded)


def test_hidden_states_are_kept_only_when_they_are_asked_for(bert: Any):
    flags: list[bool] = []
    bert.register_forward_pre_hook(lambda m, a, kw: flags.append(kw["output_hidden_states"]), with_kwargs=True)
    compute_features(bert, batch_of(2, 7), ["logits"])
    compute_features(bert, batch_of(2, 7), (name for name in ["logits", "hidden[1]"]))
    assert flags == [False, True]


def test_only_what_was_asked_for_is_given(bert: Any):
    assert set(compute_features(bert, batch_of(2, 7), ["hidden[1]"])) == {"hidden[1]"}
    assert compute_features(bert, batch_of(2, 7), []) == {}


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_the_pooled_output_with_a_head_and_without(tiny_checkpoint: Callable[[str], Path], family: str):
    model: Any = load_classifier(tiny_checkpoint(family), kind="classification", labels=LABELS, trained=True).eval()
    batch = batch_of(2, 7)
    features = compute_features(model, batch, ["pooled", "logits", "hidden[-1]"])
    alone = compute_features(model.base_model, batch, ["pooled"])
    assert set(alone) == {"pooled"}
    assert torch.equal(features["pooled"], alone["pooled"])
    assert torch.equal(features["logits"], model.classifier(features["pooled"]))
    changed = features["hidden[-1]"].clone()
    changed[:, 1:] = 0
    pooler = model.base_model.pooler
    mine = pooler(changed) if family == "bert" else torch.tanh(pooler(changed[:, 0]))
    assert torch.equal(mine, features["pooled"])  # of [CLS] only
    assert not model.base_model._forward_hooks


@pytest.mark.parametrize("family", ["distilbert", "electra", "roberta"])
def test_a_model_without_a_pooler_has_no_pooled_output(tiny_checkpoint: Callable[[str], Path], family: str):
    model: Any = load_classifier(tiny_checkpoint(family), kind="classification", labels=LABELS, trained=True).eval()
    with pytest.raises(CompressError, match=rf"unknown features \['pooled'\]: this {family} has no pooler"):
        compute_features(model, batch_of(2, 7), ["pooled"])
    assert not model.base_model._forward_hooks


@pytest.mark.parametrize("name", ["hidden", "hidden[x]", "hidden[3]", "hidden[-4]"])
def test_a_name_that_is_no_feature(bert: Any, name: str):
    with pytest.raises(
        CompressError, match=r"unknown features .*known: logits, embeddings, hidden\[i\] with i below 3"
    ):
        compute_features(bert, batch_of(1, 4), (item for item in ("logits", name)))


@pytest.mark.parametrize(
    ("family", "types"),
    [
        ("bert", True),
        ("electra", True),
        ("albert", True),
        ("ernie", True),
        ("roberta", False),
        ("distilbert", False),
        ("mpnet", False),
    ],
)
def test_token_types_reach_the_models_that_know_them(tiny_checkpoint: Callable[[str], Path], family: str, types: bool):
    model = load_classifier(tiny_checkpoint(family), kind="classification", labels=LABELS, trained=True).eval()
    assert ("token_type_ids" in accepted_inputs(model)) == types
    batch = batch_of(2, 7)
    logits = compute_features(model, batch, ["logits"])["logits"]
    other = compute_features(model, {**batch, "token_type_ids": 1 - batch["token_type_ids"]}, ["logits"])["logits"]
    assert torch.equal(logits, other) != types


def test_predict_gives_each_example_its_logits_in_order_and_keeps_the_mode(bert: Any):
    rng = np.random.default_rng(0)
    ids = [rng.integers(5, 100, length).astype(np.int32) for length in (9, 3, 20, 3, 14)]
    encoded = Encoded(ids, [np.zeros(len(row), np.int8) for row in ids], np.zeros(5, dtype=np.int64))
    bert.train()
    logits = predict_logits(bert, encoded, pad_id=0)
    assert bert.training
    assert (logits.dtype, logits.shape) == (np.float32, (5, 3))
    bert.eval()
    alone = [bert(input_ids=torch.from_numpy(row[None].astype(np.int64))).logits[0].detach().numpy() for row in ids]
    np.testing.assert_allclose(logits, alone, rtol=0, atol=1e-5)  # fp32; padded and unpadded sums round differently
