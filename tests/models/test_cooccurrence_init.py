"""A random BERT initialized from word counts: its attention, its predictions, and what stays random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from compress.errors import CompressError
from compress.models.cards import RandomInit
from compress.models.cooccurrence_init import init_encoder, init_head
from compress.models.dimensions import word_and_position_widths
from compress.models.features.named import compute_features
from compress.models.masked_lm import decoder, masked_lm_around, masked_text_loss, token_scores
from compress.models.random_models import random_config, random_encoder

WORDS, HIDDEN, LENGTH = 40, 64, 24
TOPICS = (np.arange(5, 20), np.arange(20, 35))


def encoder(architecture: str = "bert") -> Any:
    torch.manual_seed(0)
    init = RandomInit(
        architecture=architecture,  # type: ignore[arg-type]
        layers=2,
        hidden=HIDDEN,
        heads=4,
        intermediate=64,
        vocabulary=WORDS,
        max_positions=40,
        dropout=0.0,
    )
    return random_encoder(random_config(init)).eval()


def vectors() -> np.ndarray:
    """Return vectors of words in two topics; other words have zeros."""
    table = np.zeros((WORDS, HIDDEN - 16), np.float32)
    rng = np.random.default_rng(0)
    for number, topic in enumerate(TOPICS):
        table[topic, number] = 1.0
        table[topic] += 0.2 * rng.standard_normal((len(topic), HIDDEN - 16))
    return table


def batch(rows: int = 64) -> dict[str, torch.Tensor]:
    """Return texts of one topic each, with some words masked."""
    rng = np.random.default_rng(1)
    ids = np.stack([rng.choice(TOPICS[row % 2], LENGTH) for row in range(rows)])
    hidden = rng.random(ids.shape) < 0.15
    labels = np.where(hidden, ids, -100)
    shown = torch.from_numpy(np.where(hidden, 4, ids))
    ones = torch.ones_like(shown)
    return {
        "input_ids": shown,
        "attention_mask": ones,
        "token_type_ids": 0 * ones,
        "labels": torch.from_numpy(labels),
    }


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_the_first_layer_attends_to_what_is_near(architecture: str):
    model = encoder(architecture)
    init_encoder(model, vectors())
    with torch.no_grad():
        scores = compute_features(model, batch(), ["scores[0]"])["scores[0]"].softmax(-1)  # [text, head, query, key]
    apart = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]).abs()
    assert (scores.mean(0) * (apart <= 3)).sum(-1).min() > 0.5
    assert (scores.mean(0) * (apart > 12)).sum(-1).max() < 0.3
    with torch.no_grad():
        plain = compute_features(encoder(architecture), batch(), ["scores[0]"])["scores[0]"].softmax(-1)
    assert (plain.mean(0) * (apart <= 3)).sum(-1).max() < 0.4


def test_it_says_which_words_keep_such_company_before_it_is_trained():
    model = encoder()
    init_encoder(model, vectors())
    whole = masked_lm_around(model)
    counts = np.zeros(WORDS - 3, np.int64)  # the table has more rows than the tokenizer has words
    counts[5:35] = 1000
    init_head(whole, counts)
    often = decoder(whole).bias.softmax(0)
    torch.testing.assert_close(often[5:35].sum().item(), 1.0, rtol=0, atol=1e-3)
    with torch.no_grad():
        loss = masked_text_loss(whole.eval(), batch()).item()
        likely = token_scores(whole, batch()).softmax(-1)
        torch.manual_seed(0)
        drawn = masked_text_loss(masked_lm_around(encoder()).eval(), batch()).item()
    # Knowing the topic gives ln 15, knowing nothing ln 40.
    assert np.log(15) < loss < np.log(WORDS) < drawn
    row = (batch()["labels"] != -100).nonzero()[:, 0]
    for number, topic in enumerate(TOPICS):
        assert likely[row % 2 == number][:, topic].sum(1).mean() > 0.55


def test_a_vocabulary_without_padding_keeps_all_its_words():
    model = encoder()
    padding, model.config.pad_token_id = model.config.pad_token_id, None
    init_encoder(model, vectors())
    rows = model.embeddings.word_embeddings.weight
    assert (rows.norm(dim=1) > 0.9).all()
    model.config.pad_token_id = padding
    init_encoder(model, vectors())
    assert (rows.norm(dim=1) > 0.9).sum() == WORDS - 1


def test_what_it_does_not_set_stays_as_it_was_drawn():
    plain, model = encoder(), encoder()
    init_encoder(model, vectors())
    before, after = (dict(each.named_parameters()) for each in (plain, model))
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert changed == {
        "embeddings.word_embeddings.weight",
        "embeddings.position_embeddings.weight",
        *(f"encoder.layer.0.attention.self.{name}.weight" for name in ("query", "key", "value")),
        "encoder.layer.0.attention.output.dense.weight",
    }
    words = model.embeddings.word_embeddings.weight
    assert not words[:, HIDDEN - 16 :].any()
    assert not model.embeddings.position_embeddings.weight[:, : HIDDEN - 16].any()
    sizes = torch.ones(WORDS)  # [MASK] has the norm of a word
    sizes[model.config.pad_token_id] = 0.0
    torch.testing.assert_close(words.square().sum(1).sqrt(), sizes)
    init_encoder(model, np.zeros_like(vectors()))  # a text without pairs
    torch.testing.assert_close(model.embeddings.word_embeddings.weight.square().sum(1).sqrt(), sizes)


def test_a_roberta_counts_its_positions_after_its_padding():
    plain, model = encoder("roberta"), encoder("roberta")
    init_encoder(model, vectors())
    first = model.config.pad_token_id + 1
    table, drawn = (each.embeddings.position_embeddings.weight for each in (model, plain))
    torch.testing.assert_close(table[:first], drawn[:first])
    torch.testing.assert_close(table[first, HIDDEN - 16 :: 2], torch.zeros(8))  # sin 0


def test_the_width_of_positions():
    assert word_and_position_widths(128, 4) == (112, 16)
    assert word_and_position_widths(768, 12) == (752, 16)
    assert word_and_position_widths(16, 2) == (8, 8)
    with pytest.raises(CompressError, match="too narrow"):
        word_and_position_widths(8, 8)
    with pytest.raises(CompressError, match="heads are 4 wide, too narrow"):
        word_and_position_widths(4, 1)
