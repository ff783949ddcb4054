"""Examples that are longer than a model reads: all of them are counted, or a sample of many."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tokenizer_toys import TOKENIZERS, text
from tokenizers import Tokenizer

from compress.tasks import Split, long_examples
from compress.tasks.batches import long_examples as module


def split(*columns: list[str], separate_texts: bool = False, labels: np.ndarray | None = None) -> Split:
    return Split(columns, np.zeros(len(columns[0]), np.int64) if labels is None else labels, separate_texts)


@pytest.mark.parametrize("name", list(TOKENIZERS))
def test_counts_are_those_of_whole_texts(name: str) -> None:
    own: Tokenizer = TOKENIZERS[name]()
    own.no_truncation()
    rng = random.Random(name)
    texts, others = ([text(rng) for _ in range(60)] for _ in range(2))
    single = np.array([len(own.encode(one)) for one in texts])
    second = np.array([len(own.encode(one)) for one in others])
    paired = np.array([len(own.encode(*both)) for both in zip(texts, others, strict=True)])
    cases = (
        (split(texts), single),
        (split(texts, others), paired),
        (split(texts, others, separate_texts=True), np.maximum(single, second)),
    )
    for examples, lengths in cases:
        for most in (8, int(np.median(lengths)), int(lengths.max()), int(lengths.max()) + 1):
            counted = long_examples(own, examples, most, positions=10_000)
            assert counted.is_exact
            assert counted.examples == 60
            for tokens in (most, most + 1, most + 20):
                assert counted.longer_than(tokens) == np.count_nonzero(lengths > tokens)


def test_lengths_beyond_the_positions_are_not_told_apart(toy_tokenizer: Tokenizer) -> None:
    counted = long_examples(toy_tokenizer, split(["film " * 50, "film " * 9]), 8, positions=16)
    assert sorted(counted.lengths) == [11, 17]


def test_endings_are_counted_with_their_contexts(toy_tokenizer: Tokenizer) -> None:
    contexts, endings = ["film " * 9, "film " * 9, "film", "film"], ["good " * 9, "good", "good", "bad"]
    labels = np.array([[1, 0], [0, 0], [1, 1], [0, 1]])
    counted = long_examples(toy_tokenizer, split(contexts, endings, labels=labels), 16, positions=64)
    assert (counted.longer_than(16), counted.longer_than(12)) == (1, 2)


def test_many_are_estimated_on_a_sample(toy_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["film " * (40 if row % 4 == 0 else 10) for row in range(1000)] + ["film"] * 500
    for size, value in (("_SAMPLE", 100), ("_LEAST", 10)):
        monkeypatch.setattr(module, size, value)
    counted = long_examples(toy_tokenizer, split(texts), 16, positions=64)
    assert (len(counted.lengths), counted.examples, counted.is_exact) == (100, 1500, False)
    assert counted.longer_than(16) == pytest.approx(250, rel=0.2)
    assert counted.share(16) == pytest.approx(1 / 6, rel=0.2)
    monkeypatch.setattr(module, "_CHARACTERS", 5000)
    assert len(long_examples(toy_tokenizer, split(texts), 16, positions=64).lengths) == 5000 * 1000 // sum(
        map(len, texts[:1000])
    )
