"""Candidates by word vectors, against loops over the table; and the vector file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from compress.augment import GloveProposer, NeighbourProposer
from compress.augment.neighbours import LEAST, read_glove
from compress.augment.words import whole_words
from compress.errors import CompressError


@pytest.fixture(scope="module")
def table(tokenizer: Tokenizer) -> np.ndarray:
    """Return rows with a large common part, like embeddings, and few dimensions, so that some are close."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(tokenizer.get_vocab_size(), 4)) + 3.0).astype(np.float32)


def expected(table: np.ndarray, tokenizer: Tokenizer, word: str, count: int) -> list[str]:
    vocabulary, ids = whole_words(tokenizer)
    centred = table - table[ids].mean(0)
    pieces = tokenizer.encode(word, add_special_tokens=False).ids
    vector = centred[pieces].mean(0)
    scored = []
    for name, id_ in zip(vocabulary, ids, strict=True):
        cosine = centred[id_] @ vector / np.linalg.norm(centred[id_]) / np.linalg.norm(vector)
        if name != word.lower() and int(id_) not in pieces and (len(pieces) == 1 or cosine >= LEAST):
            scored.append((-cosine, name))
    return [name for _, name in sorted(scored)[:count]]


@pytest.mark.parametrize("word", ["good", "Film", "SINGS", "zebra", "goods", "filmy"])
def test_the_nearest_whole_words_by_cosine_with_the_mean_piece(table: np.ndarray, tokenizer: Tokenizer, word: str):
    proposer = NeighbourProposer(table, tokenizer)
    (row,) = proposer.propose([word], 8)
    assert [proposer.vocabulary[index] for index in row if index >= 0] == expected(table, tokenizer, word, 8)


def test_many_words_at_once_are_as_one_by_one(table: np.ndarray, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch):
    proposer = NeighbourProposer(table, tokenizer)
    words = ["good", "zebra", "film", "élan", "river"]
    single = np.concatenate([proposer.propose([word], 6) for word in words])
    monkeypatch.setattr("compress.augment.neighbours.AT_ONCE", 2)
    np.testing.assert_array_equal(proposer.propose(words, 6), single)
    assert proposer.propose([], 6).shape == (0, 6)


def test_a_word_of_unknown_letters_has_no_neighbours(table: np.ndarray, tokenizer: Tokenizer):
    assert (NeighbourProposer(table, tokenizer).propose(["фильм"], 3) == -1).all()


def test_more_candidates_than_words(table: np.ndarray, tokenizer: Tokenizer):
    proposer = NeighbourProposer(table, tokenizer)
    (row,) = proposer.propose(["good"], 1000)
    assert (row >= 0).sum() == len(proposer.vocabulary) - 1
    assert (
        np.sort(row[row >= 0]) == np.delete(np.arange(len(proposer.vocabulary)), proposer.vocabulary.index("good"))
    ).all()


def test_a_table_of_another_vocabulary_is_refused(table: np.ndarray, tokenizer: Tokenizer):
    with pytest.raises(CompressError, match="the table has 10 rows"):
        NeighbourProposer(table[:10], tokenizer)


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("the 9 9\nfilm 1 0\n, 5 5\nmovie 0.9 0.1\nFilm 1 0.01\nriver 0 1\nlake 0.1 1\nsea -1 1\n", "utf-8")
    return path


def test_neighbours_in_a_glove_file(glove: Path):
    proposer = GloveProposer(glove)
    neighbours = proposer.propose(["film", "FILM", "river", "absent"], 2)
    assert [[proposer.vocabulary[index] for index in row if index >= 0] for row in neighbours] == [
        ["movie", "lake"],
        ["movie", "lake"],
        ["lake", "sea"],
        [],
    ]


def test_words_of_a_glove_file_that_hold_spaces(tmp_path: Path):
    """glove.840B has some: the last numbers are the vector."""
    path = tmp_path / "vectors.txt"
    path.write_text("film 1 0\n. . . 5 5\nat name@domain.com 0.1 1\n1 2 3\nmovie 0.9 0.1\n", "utf-8")
    words, vectors = read_glove(path)
    assert words == ["film", ". . .", "at name@domain.com", "1", "movie"]
    np.testing.assert_allclose(vectors, [[1, 0], [5, 5], [0.1, 1], [2, 3], [0.9, 0.1]], rtol=1e-6)
    assert GloveProposer(path).vocabulary == ("film", "movie")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("film 1 2\nmovie 1 2 3\n", ":2: expected a word and 2 finite numbers, found 3"),
        ("film 1 2\nmovie 1\n", ":2: expected a word and 2 finite numbers, found 1"),
        ("film 1 2\nmovie 1 x\n", ":2: expected a word and numbers"),
        ("film 1 nan\n", ":1: expected a word and finite numbers"),
        ("film\n", ":1: expected a word and numbers"),
        ("the 1 2\n", "no words"),
    ],
)
def test_a_file_of_vectors_that_is_none(tmp_path: Path, text: str, message: str):
    path = tmp_path / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CompressError) as caught:
        GloveProposer(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_of_vectors_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(CompressError, match=r"absent\.txt"):
        GloveProposer(tmp_path / "absent.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 1 2\n")
    with pytest.raises(CompressError, match=r"latin\.txt"):
        GloveProposer(tmp_path / "latin.txt")
