"""How many tokens the examples of a split have that may be longer than a model reads, counted on a sample if they are many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tokenizers

from ..data import Split
from .task_batches import encode

_SAMPLE = 2000  # examples whose tokens are counted, at most: a share of 1% is then known to 0.2 points (standard error)
_CHARACTERS = 1_000_000  # of the sample, about: fewer examples are counted where these are long
_LEAST = 100  # examples of a sample, however long they are


@dataclass(frozen=True)
class LongExamples:
    """Examples of a split of `examples` that may be long. `lengths`: tokens of those that were counted, int64; each stands for `weight` of
    them, 1 if none was left out."""

    examples: int
    lengths: np.ndarray
    weight: float

    @property
    def is_exact(self) -> bool:
        return self.weight == 1

    def longer_than(self, tokens: int) -> float:
        """Return how many examples have more than `tokens` tokens; an estimate unless `is_exact`."""
        return float(self.weight * np.count_nonzero(self.lengths > tokens))

    def share(self, tokens: int) -> float:
        """Return the share of all examples that have more than `tokens` tokens."""
        return self.longer_than(tokens) / self.examples


def long_examples(tokenizer: tokenizers.Tokenizer, split: Split, max_length: int, positions: int) -> LongExamples:
    """Return the examples that may have more than `max_length` tokens. They are cut at `positions` + 1 tokens, so that none is longer. Of
    texts that are read separately, the longer one counts."""
    rows = _perhaps_long(tokenizer, split, max_length)
    sample = rows[np.unique(np.linspace(0, len(rows) - 1, _sample_size(split, rows)).astype(int))]
    if not len(sample):
        return LongExamples(len(split), np.zeros(0, np.int64), 1)
    lengths = encode(tokenizer, split.select(sample), max(max_length, positions) + 1).lengths
    longest = lengths.reshape(-1, len(sample)).max(axis=0) if split.separate_texts else lengths
    return LongExamples(len(split), longest, len(rows) / len(sample))


def _sample_size(split: Split, rows: np.ndarray) -> int:
    characters = sum(len(column[row]) for column in split.texts for row in rows)
    most = min(_SAMPLE, max(_LEAST, _CHARACTERS * len(rows) // max(1, characters)))
    return min(len(rows), most)


def _perhaps_long(tokenizer: tokenizers.Tokenizer, split: Split, max_length: int) -> np.ndarray:
    """Return the rows of examples that their characters do not show to be short: a text of ASCII has at most a token for each character,
    and one for a space that is put before it."""
    together = 1 if split.separate_texts else len(split.texts)
    room = max_length - tokenizer.num_special_tokens_to_add(together == 2) - together
    columns = [[len(text) if text.isascii() else room + 1 for text in column] for column in split.texts]
    characters = np.array(columns, np.int64)
    return np.flatnonzero((characters.max(axis=0) if split.separate_texts else characters.sum(axis=0)) > room)
