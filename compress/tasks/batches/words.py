"""Texts with labelled words as windows of tokens: which token represents which word, and token outputs back to words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import tokenizers

from ...losses.loss import MeanOver
from ...losses.masked_lm import IGNORED
from ...metrics.tags import concatenate_labels, split_labels
from ...runtime.words import NOWHERE, Places, Windower
from ..data import Split
from .encoded import ENCODE_AT_ONCE, Encoded, ragged_rows


@dataclass(frozen=True)
class EncodedWords(Encoded):
    """Rows are windows of texts, `labels` the gold of all words (`Labels.gold`), `places` the words' tokens. `by_word`: a student is
    compared with its teacher at those tokens alone."""

    places: Places
    by_word: bool = False

    @cached_property
    def _ids(self) -> np.ndarray:
        return split_labels(self.labels)[0]

    @cached_property
    def _labelled_tokens(self) -> np.ndarray:
        """Number of tokens in each window that represent words, int64."""
        words, windows = self.places.words_in(np.arange(len(self)))
        tokens = np.unique(np.stack([windows, self.places.position[words]]), axis=1)
        return np.bincount(tokens[0], minlength=len(self))

    def counts(self, unit: MeanOver, indices: np.ndarray) -> np.ndarray:
        return (self._labelled_tokens if unit == "labelled_tokens" or self.by_word else self.lengths)[indices]

    def collected(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return float32 [word, label] from windows and their outputs [window, length, label], in any order. A word without a token gets
        label 0, which is O if there is such a label."""
        outputs = np.zeros((0, 0), np.float32)
        for windows, batch_outputs in parts:
            outputs = outputs if outputs.size else self.places.unread(batch_outputs.shape[2], 0)
            self.places.put(outputs, windows, batch_outputs)
        return outputs

    def take(self, indices: np.ndarray) -> EncodedWords:
        """Return only these windows, in this order, with the words that have a token in them. A text begins where the previous word is not
        taken."""
        words, window = self.places.words_in(indices)
        ids, begins = split_labels(self.labels)
        starts = np.append(True, np.diff(words) != 1)[: len(words)] | begins[words]
        gold = concatenate_labels(np.split(ids[words], np.flatnonzero(starts)[1:]))
        return EncodedWords(
            *self._rows(indices),
            gold,
            Places(window, self.places.position[words], self.places.last[words]),
            self.by_word,
        )

    def concat(self, other: Encoded) -> EncodedWords:
        if not isinstance(other, EncodedWords):
            raise TypeError("words are followed by words")
        places = self.places.concat(other.places, len(self))
        return EncodedWords(*self._joined(other), places, self.by_word)

    def compared_by_answers(self) -> EncodedWords:
        return replace(self, by_word=True)

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Return `labels` int64 [window, length], `IGNORED` at tokens without a word; `compared`: 1 where a student is compared with its
        teacher; by word also `words`, their numbers. Of words that share a token, the first is learnt."""
        shape = (len(indices), length)
        words, rows = self.places.words_in(indices)
        words, rows = words[::-1], rows[::-1]
        numbers, labels = np.full(shape, NOWHERE, np.int64), np.full(shape, IGNORED, np.int64)
        numbers[rows, self.places.position[words]] = words
        labels[rows, self.places.position[words]] = self._ids[words]
        if self.by_word:
            return {"labels": labels, "compared": (numbers != NOWHERE).astype(np.int64), "words": numbers}
        real = np.arange(length) < self.lengths[indices, None]
        return {"labels": labels, "compared": real.astype(np.int64)}


def encode_words(tokenizer: tokenizers.Tokenizer, split: Split, max_length: int) -> EncodedWords:
    """Return every text in windows of at most `max_length` tokens. The given tokenizer is not changed."""
    windower = Windower(tokenizer, max_length)
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    places = Places(*np.zeros((3, 0), np.int64))
    for start in range(0, len(split), ENCODE_AT_ONCE):
        part = slice(start, start + ENCODE_AT_ONCE)
        windows = windower(split.texts[0][part], [label[:, 1:] for label in split.labels[part]])
        places = places.concat(windows.places, len(ids))
        lengths = [len(encoding) for encoding in windows.encodings]
        ids += ragged_rows([encoding.ids for encoding in windows.encodings], lengths, np.int32)
        types += ragged_rows([encoding.type_ids for encoding in windows.encodings], lengths, np.int8)
    gold = concatenate_labels([label[:, 0] for label in split.labels])
    return EncodedWords(ids, types, gold, places)
