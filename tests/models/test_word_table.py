"""A model with some rows of its word table removed gives the same outputs for the same texts, bit for bit, in every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import classifier_of
from plain_teachers import PADDING, plain_classifier
from transformers import AutoModelForSequenceClassification

from compress.models.static_model import StaticConfig, StaticForSequenceClassification
from compress.models.word_table import keep_rows, largest_row, named_tokens

PLAIN = ("xlnet", "deberta-v2")
FAMILIES = ("bert", "distilbert", "roberta", "xlm-roberta", "electra", "albert", "ernie", "modernbert", *PLAIN)


def logits(model: Any, ids: np.ndarray, pad: int) -> torch.Tensor:
    inputs = torch.from_numpy(ids)
    with torch.no_grad():
        return model(input_ids=inputs, attention_mask=(inputs != pad).long()).logits


def batch(kept: np.ndarray, pad: int) -> np.ndarray:
    """Return texts of two lengths with kept tokens other than padding, in the original ids."""
    rng = np.random.default_rng(3)
    ids = rng.choice(kept[kept != pad], (4, 12))
    ids[2:, 7:] = pad
    return ids


def check(model: Any, kept: np.ndarray, pad: int) -> None:
    ids = batch(kept, pad)
    expected, parameters = logits(model, ids, pad), model.num_parameters()
    width = model.get_input_embeddings().embedding_dim
    keep_rows(model, kept)
    new = {int(old): number for number, old in enumerate(kept)}
    assert torch.equal(logits(model, np.vectorize(new.get)(ids), new[pad]), expected)
    assert model.num_parameters() == parameters - (90 - len(kept)) * width
    assert model.config.vocab_size == len(kept) and model.config.pad_token_id == new[pad]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_tokens_have_the_same_answers(family: str) -> None:
    model = plain_classifier(family) if family in PLAIN else classifier_of(family)
    pad = PADDING[family] if family in PLAIN else model.config.pad_token_id
    named = named_tokens(model.config.to_dict())
    assert pad in named
    kept = np.array(sorted({*named, *range(7, 80, 3), 88} & {*range(90)}))
    check(model, kept, pad)


def test_an_mpnet_keeps_all_up_to_its_padding(tiny_checkpoint: Callable[[str], Path]) -> None:
    model: Any = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("mpnet")).eval()
    assert {0, 1} <= named_tokens(model.config.to_dict())
    kept = np.array([0, 1, 2, *range(40, 120, 7)])
    ids = batch(kept, 1)
    expected = logits(model, ids, 1)
    keep_rows(model, kept)
    assert torch.equal(logits(model, np.searchsorted(kept, ids), 1), expected)


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_padding_moves_where_positions_are_not_counted_from_it(family: str) -> None:
    fields = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
    model = classifier_of(family, pad_token_id=60, **(fields if family == "modernbert" else {}))
    kept = np.array([3, 10, 20, 21, 60, 61, 89])
    check(model, kept, 60)
    assert model.config.pad_token_id == 4 == model.get_input_embeddings().padding_idx


def test_padding_keeps_its_number_where_positions_are_counted_from_it() -> None:
    config = {"model_type": "roberta", "pad_token_id": 5, "bos_token_id": 0, "eos_token_id": 40}
    assert named_tokens(config) == {0, 1, 2, 3, 4, 5, 40}


def test_the_tokens_that_a_static_model_leaves_out_and_parts_texts_by_follow() -> None:
    config = StaticConfig(
        vocab_size=90, hidden_size=8, intermediate_size=8, texts=2, special_token_ids=[0, 30, 31], separator_token_id=31
    )
    torch.manual_seed(1)
    model = StaticForSequenceClassification(config).eval()
    assert named_tokens(config.to_dict()) == {0, 30, 31}
    kept = np.array([0, 12, 30, 31, 50, 70])
    check(model, kept, 0)
    assert (list(model.config.special_token_ids), model.config.separator_token_id) == ([0, 2, 3], 3)


def test_a_token_that_is_not_kept_is_named_no_more() -> None:
    model = classifier_of("albert", bos_token_id=2, eos_token_id=77)
    keep_rows(model, np.array([0, 2, 5]))
    assert (model.config.bos_token_id, model.config.eos_token_id) == (1, None)


def test_the_row_of_the_largest_weight_among_tokens() -> None:
    model = classifier_of("bert")
    with torch.no_grad():
        model.get_input_embeddings().weight[41, 3] = -9.0
        model.get_input_embeddings().weight[80, 3] = 10.0
    assert (largest_row(model, range(90)), largest_row(model, {3, 41, 7})) == (80, 41)
