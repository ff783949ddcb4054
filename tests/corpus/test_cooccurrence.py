"""Counts of word pairs within a window, and word vectors from them, against plain loops and numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus_toys import write_shards

from compress.corpus import PairBatches, TextBatches, count_pairs, word_vectors
from compress.corpus.cooccurrence import WINDOW

SEP, WORDS = 3, 40


def batches(tmp_path: Path, *, separate: bool) -> TextBatches:
    rng = np.random.default_rng(0)
    tokens = [token for size in rng.integers(1, 30, 60) for token in [*rng.integers(5, WORDS - 3, size), SEP]]
    shards = write_shards(tmp_path / "shards", np.array(tokens), vocabulary=WORDS)
    return TextBatches(shards, length=16, batch_size=4, seed=1, separate_documents=separate)


@pytest.mark.parametrize("separate", [True, False])
def test_pairs_are_counted_as_a_plain_loop_counts_them(tmp_path: Path, separate: bool):
    text, _ = batches(tmp_path, separate=separate).held_out(0.2)
    expected, each = np.zeros((WORDS, WORDS)), np.zeros(WORDS, int)
    batch = text.collate(np.arange(text.count))
    documents = batch["documents"] if separate else np.zeros_like(batch["input_ids"])
    for ids, numbers in zip(batch["input_ids"].tolist(), documents.tolist(), strict=True):
        for i, word in enumerate(ids):
            each[word] += word > 4
            for j in range(i + 1, min(i + WINDOW + 1, len(ids))):
                if min(word, ids[j]) > 4 and numbers[i] == numbers[j]:
                    expected[word, ids[j]] += 1 / (j - i)
                    expected[ids[j], word] += 1 / (j - i)
    progress: list[tuple[int, int]] = []
    pairs, counts = count_pairs(text, lambda done, total: progress.append((done, total)))
    np.testing.assert_allclose(pairs.toarray(), expected, rtol=1e-9)
    assert counts.tolist() == each.tolist()
    assert progress[-1] == (text.count, text.count)
    assert expected.sum() > 100


def test_two_segments_are_not_near_each_other(tmp_path: Path):
    text = [token for i in range(60) for token in [5 + i % 2] * 12]
    shards = write_shards(tmp_path / "shards", np.array([*text, SEP]), vocabulary=WORDS)
    pairs = PairBatches(shards, length=16, batch_size=2, seed=1, ends=(5, 6), labels="sentence_order")
    batch = pairs.collate(np.arange(pairs.count))
    assert (batch["token_type_ids"] == 1).any()
    actual, _ = count_pairs(pairs)
    expected = np.zeros((WORDS, WORDS))
    for ids, segments in zip(batch["input_ids"].tolist(), batch["token_type_ids"].tolist(), strict=True):
        for i, word in enumerate(ids):
            for j in range(i + 1, min(i + WINDOW + 1, len(ids))):
                if min(word, ids[j]) > 4 and segments[i] == segments[j]:
                    expected[word, ids[j]] += 1 / (j - i)
                    expected[ids[j], word] += 1 / (j - i)
    np.testing.assert_allclose(actual.toarray(), expected, rtol=1e-9)


def test_vectors_are_those_of_a_whole_decomposition(tmp_path: Path):
    pairs, counts = count_pairs(batches(tmp_path, separate=True))
    table = pairs.toarray()
    own = table.sum(1)
    share = own**0.75 / (own**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.maximum(np.nan_to_num(np.log(table / np.outer(own, share)), neginf=0.0), 0.0)
    left, values, _ = np.linalg.svd(information)
    expected = (left[:, :8] * values[:8]) @ left[:, :8].T
    vectors = word_vectors(pairs, 8, seed=2)
    assert vectors.shape == (WORDS, 8)
    np.testing.assert_allclose(vectors @ vectors.T, expected, atol=1e-4)
    assert not vectors[counts == 0].any()
    np.testing.assert_array_equal(vectors, word_vectors(pairs, 8, seed=2))


def test_words_of_like_company_have_like_vectors(tmp_path: Path):
    """Words with the same neighbours, in a text of two topics."""
    rng = np.random.default_rng(3)
    topics = (np.arange(5, 20), np.arange(20, 35))
    text = [token for i in range(400) for token in [*rng.choice(topics[i % 2], 12), SEP]]
    shards = write_shards(tmp_path / "shards", np.array(text), vocabulary=WORDS)
    pairs, _ = count_pairs(TextBatches(shards, length=16, batch_size=4, seed=1, separate_documents=True))
    vectors = word_vectors(pairs, 2, seed=0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    cosines = unit @ unit.T
    assert cosines[5:20, 5:20].min() > 0.9
    assert cosines[5:20, 20:35].max() < 0.1


def test_more_dimensions_than_words_and_a_text_without_pairs_are_no_fault(tmp_path: Path):
    pairs, _ = count_pairs(batches(tmp_path, separate=True))
    vectors, again = (word_vectors(pairs, WORDS + 5, seed=0) for _ in range(2))
    np.testing.assert_array_equal(vectors, again)
    fewer = word_vectors(pairs, WORDS - 1, seed=0)
    np.testing.assert_allclose(vectors @ vectors.T, fewer @ fewer.T, atol=1e-5)
    assert fewer.any()
    shards = write_shards(tmp_path / "bare", np.array([7, SEP] * 60), vocabulary=WORDS)
    pairs, counts = count_pairs(TextBatches(shards, length=16, batch_size=2, seed=1, separate_documents=True))
    assert pairs.nnz == 0
    assert counts[7] > 0
    assert not word_vectors(pairs, 4, seed=0).any()
