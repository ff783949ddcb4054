"""Which tokens begin a word and which continue one, in scripts with and without spaces."""

from __future__ import annotations

import numpy as np
import pytest
import tokenizers
from corpus_toys import roberta_tokenizer
from tokenizers import models, pre_tokenizers, processors

from compress.tokenization.word_starts import continuing


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("電影好看。", "電影好看。"),  # Chinese: each character
        ("とてもカメラ", "とてもカメラ"),
        ("ดี", "ดี"),
        ("film é", "Ġ"),  # what is not spaced there goes on
        ("phở 🎬", "Ġ"),
    ],
)
def test_scripts_without_spaces_have_a_word_in_each_piece(text: str, begin: str) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    characters = {
        "".join(piece for piece, _ in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(c))
        for c in text
    }
    vocabulary = {
        token: number for number, token in enumerate(dict.fromkeys(["<s>", "</s>", *alphabet, *sorted(characters)]))
    }
    tokenizer = roberta_like(vocabulary)
    goes_on = continuing(tokenizer)
    written = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for character in text:
        (token, _), *_ = written.pre_tokenize_str(character)
        assert goes_on[vocabulary[token]] == (character not in begin and token not in begin)


def roberta_like(vocabulary: dict[str, int]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def test_the_first_bytes_of_such_a_character_begin_a_word_and_the_others_go_on() -> None:
    tokenizer = roberta_tokenizer()
    goes_on = continuing(tokenizer)
    written = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for character, begins in (("電", True), ("の", True), ("é", False), ("🎬", False)):
        (token, _), *_ = written.pre_tokenize_str(character)
        first, *rest = (bool(goes_on[tokenizer.token_to_id(piece)]) for piece in token)
        assert first is not begins
        assert all(rest)


def test_pieces_of_sentencepiece_too() -> None:
    pieces = [
        ("<s>", 0.0),
        ("<unk>", 0.0),
        ("</s>", 0.0),
        ("▁", -2.0),
        ("▁a", -3.0),
        ("b", -3.0),
        ("電影", -3.0),
        ("て", -3.0),
        ("ดี", -3.0),
    ]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(["<s>", "<unk>", "</s>"])
    around = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=around)
    assert np.flatnonzero(continuing(tokenizer)).tolist() == [5]
