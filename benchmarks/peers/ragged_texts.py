"""Seeded random texts of very different lengths, made of a tokenizer's own words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

# Words per text: log-normal. They make 39 tokens on average in MiniLM's vocabulary: between SST-2's sentences (25) and the pairs of
# MRPC (52) and RTE (67, the longest 252).
MEDIAN, SPREAD, FEWEST, MOST = 22, 0.6, 2, 160
_JOINED = 0.15  # share of words that are two joined, which become two or more tokens, like rare words
_SEED = 7


def ragged_texts(tokenizer: Path, count: int) -> list[str]:
    """Return `count` texts of whole words of the WordPiece vocabulary of `tokenizer`, a tokenizer.json."""
    vocabulary = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    words = np.array(sorted(word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 1))
    generator = np.random.default_rng(_SEED)
    sizes = np.clip(np.rint(generator.lognormal(np.log(MEDIAN), SPREAD, count)), FEWEST, MOST).astype(int)
    return [_text(generator, words, size) for size in sizes]


def _text(generator: np.random.Generator, words: np.ndarray, size: int) -> str:
    chosen = generator.choice(words, size).tolist()
    seconds = generator.choice(words, size).tolist()
    joined = generator.random(size) < _JOINED
    return " ".join(one + two if both else one for one, two, both in zip(chosen, seconds, joined, strict=True)) + "."
