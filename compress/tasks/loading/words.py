"""Texts as hashed words, and runs of words in them, for finding copies, extracts and near copies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

_WORD = re.compile(r"\w+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying by its powers loses no bits


def words_of(text: str) -> str:
    """Return the words in lower case, separated by single spaces, without punctuation; for a text without words, the text."""
    return " ".join(_WORD.findall(text.lower())) or " ".join(text.split())


@dataclass(frozen=True)
class HashedTexts:
    """`hashes`: uint64, the words of all texts in sequence; `counts`: int64, number of words [text]."""

    hashes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, texts: Iterable[str]) -> HashedTexts:
        """Hash `texts` from `words_of`. A word's hash is the same in every process."""
        known: dict[str, int] = {}
        hashes, counts = [], []
        for text in texts:
            words = text.split(" ")
            counts.append(len(words))
            for word in words:
                if word not in known:
                    known[word] = _hash(word)
                hashes.append(known[word])
        return cls(np.array(hashes, dtype=np.uint64), np.array(counts, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.counts)

    def runs(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Return every run of `length` words in one text: its hash, uint64 [run], and the text's index, int64 [run]."""
        count = len(self.hashes) - length + 1
        if count <= 0:
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        run = np.zeros(count, dtype=np.uint64)
        for index in range(length):
            run = run * _FACTOR + self.hashes[index : index + count]
        left = np.repeat(np.cumsum(self.counts), self.counts) - np.arange(len(self.hashes))  # words to the text's end
        inside = left[:count] >= length
        return run[inside], np.repeat(np.arange(len(self)), self.counts)[:count][inside]


def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
