"""Words of texts, and copies of examples, with the families' kinds of tokenizers: ## pieces, bytes, SentencePiece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import masked_lm_of, texts, tokenizer_of

from compress.augment import GloveProposer, MaskedLmProposer, NeighbourProposer, augment
from compress.augment.candidates import Proposers, sort_words
from compress.augment.texts import words_of
from compress.augment.words import is_content_word
from compress.tasks import Split
from compress.tokenization.special import special_ids
from compress.tokenization.word_starts import continuing

KINDS = pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "albert"])
LINES = [line for line in texts()[:12] if len(line) < 120]
GLOVE = "wooden 1 0\ntedious 0.9 0.1\nmoving 0 1\nsubtle 0.1 0.9\nstory 1 1\nplot 1 0.9\n"


def split() -> Split:
    return Split((LINES,), np.zeros(len(LINES), np.int64))


@KINDS
def test_tokens_that_go_on_with_a_word_are_put_to_it(family: str):
    tokenizer = tokenizer_of(family)
    goes_on = continuing(tokenizer)
    assert not goes_on[list(special_ids(tokenizer).every)].any()
    for line in LINES:
        words: list[str] = []
        for number in tokenizer.encode(line, add_special_tokens=False).ids:
            piece = str(tokenizer.id_to_token(number)).removeprefix("##").strip("Ġ▁")
            words[-1:] = [words[-1] + piece] if goes_on[number] else [*words[-1:], piece]
        assert [word.lower() for word in words] == line.lower().split()


@KINDS
def test_words_of_one_token_are_where_the_texts_have_them(family: str):
    tokenizer = tokenizer_of(family)
    words = words_of(split())
    slots, single, several = sort_words(words, np.ones(words.words, bool), tokenizer, 64)
    assert len(single) and len(several)
    for word, text, place in zip(slots.words, slots.text, slots.position, strict=True):
        assert str(tokenizer.id_to_token(int(slots.texts[text][place]))).strip("Ġ▁").lower() == word.lower()


@KINDS
def test_copies_differ_in_words_alone(family: str, tmp_path: Path):
    """From a masked language model for one-token words, from GloVe or the word embeddings for the others."""
    tokenizer = tokenizer_of(family)
    model: Any = masked_lm_of(family, tokenizer)
    (tmp_path / "glove.txt").write_text(GLOVE)
    table = model.get_input_embeddings().weight.detach().numpy()
    for others in (GloveProposer(tmp_path / "glove.txt"), NeighbourProposer(table, tokenizer)):
        proposers = Proposers(MaskedLmProposer(model, tokenizer), others)
        augmented = augment(
            split(), tokenizer=tokenizer, proposers=proposers, copies=2, probability=0.6, candidates=5, seed=1
        )
        known = {word.lower() for word in (*proposers.masked_lm.vocabulary, *others.vocabulary)}  # type: ignore[union-attr]
        replaced = set()
        for copy, source in zip(augmented.split.texts[0], augmented.source, strict=True):
            pairs = list(zip(copy.split(" "), LINES[source].split(" "), strict=True))
            replaced |= {mine.lower() for mine, theirs in pairs if mine != theirs}
        assert replaced
        assert replaced <= known
        assert all(is_content_word(word) for word in replaced)


@KINDS
def test_a_word_of_unknown_letters_has_no_neighbours(family: str):
    """It has the row of the unknown token, which has no near rows. Byte-level tokenizers know all letters."""
    tokenizer = tokenizer_of(family)
    table = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 8)).astype(np.float32)
    neighbours = NeighbourProposer(table, tokenizer).propose(["ЖЖЖ", "good"], 3)
    assert (neighbours[1] >= 0).any()
    if family != "roberta":
        assert (neighbours[0] < 0).all()


@KINDS
def test_the_mask_is_the_tokenizers_own(family: str):
    tokenizer = tokenizer_of(family)
    proposer = MaskedLmProposer(torch.nn.Linear(1, 1), tokenizer)
    assert tokenizer.id_to_token(proposer._mask) in ("[MASK]", "<mask>")
    assert proposer._mask == special_ids(tokenizer).mask
