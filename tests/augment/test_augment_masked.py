"""Candidates of a masked language model: batched and padded, against one row at a time; stored and resumed."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from augment_texts import sentences
from tokenizers import Tokenizer

from compress.augment import MaskedLmProposer
from compress.augment.batching import MASKED_SHARE, Slots, batches_of
from compress.augment.candidates import sort_words
from compress.augment.texts import words_of
from compress.errors import CompressError
from compress.models.masked_lm import decoder
from compress.tasks import Split

TEXTS = [*sentences(5, 14), *sentences(6, 5, seed=1), "good", "The bad [MASK]"]


def slots_of(texts: list[str], tokenizer: Tokenizer, length: int = 40) -> Slots:
    words = words_of(Split((texts,), np.zeros(len(texts))))
    return sort_words(words, np.ones(words.words, bool), tokenizer, length)[0]


@pytest.fixture
def slots(tokenizer: Tokenizer) -> Slots:
    return slots_of(TEXTS, tokenizer)


def silent(done: int, total: int) -> None:
    pass


def reference(
    model: Any, proposer: MaskedLmProposer, tokenizer: Tokenizer, slots: Slots, group: list[int]
) -> list[list[str]]:
    """Return all words by score at each slot of one text, masked together, unpadded, through transformers' own head."""
    ids = slots.texts[slots.text[group[0]]].astype(np.int64).copy()
    ids[slots.position[group]] = tokenizer.token_to_id("[MASK]")
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(ids[None])).logits[0].numpy()
    ranked = []
    for slot in group:
        scores = {word: logits[slots.position[slot], tokenizer.token_to_id(word)] for word in proposer.vocabulary}
        scores.pop(slots.words[slot].lower())
        ranked.append(sorted(scores, key=lambda word, scores=scores: -scores[word]))
    return ranked


@pytest.mark.parametrize("tokens", [1, 60, 1536])
def test_every_word_is_masked_once_and_few_at_a_time(slots: Slots, tokens: int):
    batches = batches_of(slots, tokens)
    assert sorted(np.concatenate([batch.slots for batch in batches]).tolist()) == list(range(len(slots)))
    for batch in batches:
        inputs, masked = batch.inputs(slots, mask_id=4, pad_id=0)
        assert len(batch.texts) == 1 or inputs["input_ids"].size <= tokens
        for row, text in enumerate(batch.texts):
            length = len(slots.texts[text])
            assert 1 <= masked[row].sum() <= max(1, math.ceil(MASKED_SHARE * (length - 2)))
            assert inputs["attention_mask"][row].sum() == length
            kept = ~masked[row, :length]
            np.testing.assert_array_equal(inputs["input_ids"][row, :length][kept], slots.texts[text][kept])
            assert (inputs["input_ids"][row, masked[row]] == 4).all()
            assert set(slots.text[batch.slots[batch.row == row]]) == {text}


@pytest.mark.parametrize("bias", [True, False])
def test_candidates_are_those_of_one_row_at_a_time(model: Any, tokenizer: Tokenizer, slots: Slots, bias: bool):
    if not bias:
        model = deepcopy(model)
        head: Any = decoder(model)
        head.bias = None
    proposer = MaskedLmProposer(model, tokenizer)
    candidates = proposer.propose(slots, 6, None, silent)
    for batch in batches_of(slots, 1536):
        for row in range(len(batch.texts)):
            group = batch.slots[batch.row == row].tolist()
            for slot, words in zip(group, reference(model, proposer, tokenizer, slots, group), strict=True):
                assert [proposer.vocabulary[index] for index in candidates[slot]] == words[:6]


def test_neighbouring_words_are_masked_in_different_forwards(tokenizer: Tokenizer):
    slots = slots_of(["good bad fine dull film movie story plot"], tokenizer)
    (batch,) = batches_of(slots, 1536)
    assert [batch.slots[batch.row == row].tolist() for row in range(4)] == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_words_beyond_the_models_length_are_not_its_own(tokenizer: Tokenizer, model: Any):
    proposer = MaskedLmProposer(model, tokenizer)
    assert proposer.max_length == 40
    words = words_of(Split((["good bad " * 30],), np.zeros(1)))
    slots, single, several = sort_words(words, np.ones(60, bool), tokenizer, 40)
    assert (len(single), len(several)) == (38, 22)
    assert slots.texts[0].tolist()[-1] == tokenizer.token_to_id("[SEP]")
    assert proposer.propose(slots, 3, None, silent).shape == (38, 3)


def test_the_models_mode_is_restored(model: Any, tokenizer: Tokenizer, slots: Slots):
    model.train()
    MaskedLmProposer(model, tokenizer).propose(slots, 3, None, silent)
    assert model.training
    model.eval()


def test_a_tokenizer_without_a_mask_is_refused(model: Any):
    from tokenizers import models

    with pytest.raises(CompressError, match="a mask token"):
        MaskedLmProposer(model, Tokenizer(models.WordPiece(vocab={"[UNK]": 0, "film": 1}, unk_token="[UNK]")))


@pytest.fixture
def forwards(model: Any):
    """Count the model's forward passes; set `stop_at` to raise at one."""

    class Count:
        done = 0
        stop_at = -1

    count = Count()

    def hook(module: Any, inputs: Any) -> None:
        if count.done == count.stop_at:
            raise KeyboardInterrupt
        count.done += 1

    handle = model.bert.register_forward_pre_hook(hook)
    yield count
    handle.remove()


def test_an_interrupted_call_goes_on_with_the_parts_it_finished(
    model: Any, tokenizer: Tokenizer, slots: Slots, forwards: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("compress.augment.masked.CPU_TOKENS", 60)
    monkeypatch.setattr("compress.augment.masked.PART_TOKENS", 180)
    proposer = MaskedLmProposer(model, tokenizer)
    seen: list[tuple[int, int]] = []
    expected = proposer.propose(slots, 5, None, lambda done, total: seen.append((done, total)))
    whole = forwards.done
    assert whole > 10
    assert seen == sorted(seen)
    assert seen[-1] == (len(slots), len(slots))
    forwards.done, forwards.stop_at = 0, 8
    with pytest.raises(KeyboardInterrupt):
        proposer.propose(slots, 5, tmp_path, silent)
    forwards.done, forwards.stop_at = 0, -1
    np.testing.assert_array_equal(proposer.propose(slots, 5, tmp_path, silent), expected)
    assert forwards.done == whole - 6
    forwards.done = 0
    np.testing.assert_array_equal(proposer.propose(slots, 5, tmp_path, silent), expected)
    assert forwards.done == 0


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"not an array", None])
def test_a_damaged_part_is_made_again(
    model: Any, tokenizer: Tokenizer, slots: Slots, tmp_path: Path, damage: bytes | None
):
    proposer = MaskedLmProposer(model, tokenizer)
    expected = proposer.propose(slots, 5, tmp_path, silent)
    (part,) = tmp_path.glob("*.npy")
    part.write_bytes(part.read_bytes()[:-3] if damage is None else damage)
    np.testing.assert_array_equal(proposer.propose(slots, 5, tmp_path, silent), expected)
    assert [path.name for path in tmp_path.iterdir()] == [part.name]
