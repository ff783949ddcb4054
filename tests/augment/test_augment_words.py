"""Which words may be replaced, and by which."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from compress.augment import MaskedLmProposer, NeighbourProposer
from compress.augment.texts import pieces_of, words_of
from compress.augment.words import FUNCTION_WORDS, content_words, is_content_word, match_case, whole_words
from compress.corpus.vocabulary import byte_level
from compress.tasks import Split


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in content_words(text)]


def test_numbers_punctuation_function_words_and_single_letters_are_left_alone():
    text = "The film-maker's 2nd film, 1998 (in the U.S.), wasn't  bad: x 3.5!"
    assert words(text) == ["film", "maker", "film", "bad"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ein schöner Film", ["Ein", "schöner", "Film"]),
        ("хороший фильм 😀 ok", ["хороший", "фильм", "ok"]),
        ("这部电影 good いいね ดี 좋은 영화", ["good", "좋은", "영화"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_words_of_any_script_with_spaces(text: str, expected: list[str]):
    assert words(text) == expected


def test_function_words_are_lower_case_and_recognised_in_any():
    assert all(word == word.lower() for word in FUNCTION_WORDS)
    assert not any(is_content_word(word) for word in ("Not", "NOT", "Wasn", "the"))


@pytest.mark.parametrize(
    ("word", "like", "expected"),
    [("movie", "film", "movie"), ("movie", "Film", "Movie"), ("movie", "FILM", "MOVIE"), ("Paris", "town", "Paris")],
)
def test_capitals_follow_the_word_replaced(word: str, like: str, expected: str):
    assert match_case(word, like) == expected


def bpe(tokens: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def test_whole_words_of_each_kind_of_tokenizer(tokenizer: Tokenizer):
    vocabulary, ids = whole_words(tokenizer)
    assert {"good", "film"} <= set(vocabulary)
    assert not {"the", "not", "a", "##b", "[MASK]", ".", "7"} & set(vocabulary)
    assert [tokenizer.id_to_token(int(id_)) for id_ in ids] == list(vocabulary)
    assert whole_words(bpe(["<mask>", "film", "Ġfilm", "Ġthe", "Ġ7", "ing"]))[0] == ("film",)
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁film", -1.0), ("ing", -1.0), ("▁", -1.0)], unk_id=0))
    assert whole_words(unigram)[0] == ("film",)


def test_byte_level_tokens_become_the_words_of_texts():
    """An accented or Cyrillic letter is two characters of a token. Dashes, and tokens that end inside a letter, are not words."""
    lines = ["Der Fußball — schön", "le très bon élève – déjà", "хороший фильм — рыба рука роман реку"] * 20
    tokenizer = byte_level(lines, 400)
    assert {"ĠFuÃŁball", "ĠâĢĶ", "ĠâĢ", "ĠÑĢ", "ĠÑħÐ¾Ñ"} <= tokenizer.get_vocab().keys()
    vocabulary, ids = whole_words(tokenizer)
    assert {"Fußball", "schön", "très", "bon", "élève", "déjà", "хороший", "фильм", "рыба"} <= set(vocabulary)
    assert all(any(word in line for line in lines) and is_content_word(word) for word in vocabulary)
    assert [tokenizer.encode(f" {word}", add_special_tokens=False).ids for word in vocabulary] == [[id_] for id_ in ids]
    table = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 8)).astype(np.float32)
    for proposer in (NeighbourProposer(table, tokenizer), MaskedLmProposer(None, tokenizer)):
        assert proposer.vocabulary == vocabulary


def test_the_tokens_of_each_word(tokenizer: Tokenizer):
    text = "The GOOD filmé, [MASK] zoo MASK good"
    texts = words_of(Split(([text, "good film"],), np.zeros(2)))
    pieces = pieces_of(texts, tokenizer)
    word_list = [texts.word(number, int(texts.text_of(np.array([number]))[0])) for number in range(texts.words)]
    assert word_list == ["GOOD", "filmé", "MASK", "zoo", "MASK", "good", "good", "film"]
    assert pieces.count.tolist() == [1, 2, 0, 3, 4, 1, 1, 1]
    tokens = [tokenizer.encode(line).tokens for line in texts.texts]
    assert tokens[0][pieces.position[0]] == "good"
    assert tokens[0][pieces.position[5]] == "good"
    assert tokens[1][pieces.position[7]] == "film"


def test_a_byte_level_token_holds_the_space_before_its_word():
    tokens = ["Ġ", *"abcdefghijklmnopqrstuvwxyz", "fi", "fil", "film", "Ġfilm", "go", "goo", "good"]
    merges = [("f", "i"), ("fi", "l"), ("fil", "m"), ("Ġ", "film"), ("g", "o"), ("go", "o"), ("goo", "d")]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert tokenizer.encode("good film").tokens == ["good", "Ġfilm"]
    pieces = pieces_of(words_of(Split((["good film"],), np.zeros(1))), tokenizer)
    assert (pieces.position.tolist(), pieces.count.tolist()) == ([0, 1], [1, 1])
