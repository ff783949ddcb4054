"""Pairs of segments: consecutive ones of a document, in half of the pairs swapped (Lan et al. 2020, §3.1) or with a second segment from
another document (Devlin et al. 2018, §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import tokenizers

from ..errors import CompressError
from .batches import TextBatches
from .shards import TokenShards

SWAPPED = 0.5  # share of pairs swapped, or with a second segment from another document
_DRAWS = 32  # sequences tried for a segment of another document; if none has one, the pair is unchanged
LEAST = 8  # fewest tokens of a document that gives a pair
_MARKS = (".", "!", "?", "。", "！", "？")
_STREAM = 0x706169727320  # separates these draws from those that order the sequences and mask them


def sentence_ends(tokenizer: tokenizers.Tokenizer) -> tuple[int, ...]:
    """Return the ids of tokens that end a sentence, as far as the vocabulary has them."""
    numbers = (tokenizer.token_to_id(mark) for mark in _MARKS)
    return tuple(number for number in numbers if number is not None)


# The two segments as the model sees them, and whether they differ from the text.
Pair = tuple[np.ndarray, np.ndarray, bool]


class _Run(NamedTuple):
    """The text of a pair, the positions where it may be split, and whether these are between sentences."""

    text: np.ndarray
    boundaries: np.ndarray
    sentences: bool


class PairBatches(TextBatches):
    """[CLS] A [SEP] B [SEP]: A and B are consecutive text of one document; in half of the pairs they are swapped (`labels`
    "sentence_order"), or B ends a pair of another document ("next_sentence").

    A document of n tokens gives ⌈n / (`length` - 3)⌉ evenly spaced sequences; one of less than 8 tokens gives none. A sequence begins at
    the start of a sentence and has the whole sentences that fit (they may overlap with the next sequence), so that no truncated sentence
    reveals the order; it is split between two of them, uniformly at random. If fewer than two sentences fit, it is `length` - 3 tokens (or
    the whole document), split anywhere. The rest of `length` is padding. `ends`: tokens that end a sentence.

    The B of another document has the length of the one it replaces, or the nearest available, and the same form: whole sentences for whole
    sentences, an arbitrary piece for an arbitrary piece. So neither its end nor the length of the pair reveals the label.

    Split, swap and other document depend only on (seed, epoch, sequence), so an id is epoch · sequences + sequence. Raises `CompressError`
    like `TextBatches`, and for "next_sentence" with a single document.
    """

    def __init__(
        self,
        shards: TokenShards,
        *,
        length: int,
        batch_size: int,
        seed: int,
        ends: Sequence[int] = (),
        labels: Literal["sentence_order", "next_sentence"] = "sentence_order",
    ) -> None:
        self._labels = labels
        self._ends_sentence = np.zeros(shards.vocabulary, bool)
        self._ends_sentence[list(ends)] = True
        self._starts, self._sizes = _documents(shards)
        super().__init__(shards, length=length, batch_size=batch_size, seed=seed)
        if labels == "next_sentence" and len(self._sizes) < 2:
            raise CompressError(
                f"next_sentence needs segments of two documents of at least {LEAST} tokens, and the corpus has one: put a blank line "
                "between documents, or give more text"
            )
        self._recent: dict[int, Pair] = {}

    def held_out(self, share: float) -> tuple[Self, Self | None]:
        train, held = super().held_out(share)
        for part in (train, held):
            if part is not None:
                part._recent = {}  # an id means different pairs in each
        return train, held

    def _sequences(self) -> int:
        """Return the number of sequences; sets `_first`, the number of each document's first sequence."""
        counts = -(-self._sizes // (self.length - 3))
        self._first = np.cumsum([0, *counts], dtype=np.int64)
        return int(self._first[-1])

    def _check_enough(self) -> None:
        if self.count < self.batch_size:
            raise CompressError(
                f"the corpus gives {self.count:,} pairs of segments of {self.length} tokens, each from one document of "
                f"at least {LEAST}; a batch needs {self.batch_size}: give more text, or choose a smaller batch_size"
            )

    def indices(self, step: int) -> np.ndarray:
        return super().indices(step) + step // len(self) * self.count

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.array([len(one) + len(other) + 3 for one, other, _ in map(self._pair, indices.tolist())], np.int64)

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Return the arrays of `TextBatches`, with token type 1 for the second segment, and int64 [batch] under the name of the labels: 1
        if swapped, or of another document."""
        special = self.shards.special
        ids = np.full((len(indices), self.length), special.sep if special.pad is None else special.pad, np.int64)
        mask, types, swapped = np.zeros_like(ids), np.zeros_like(ids), np.zeros(len(indices), np.int64)
        for row, index in enumerate(indices.tolist()):
            first, second, swapped[row] = self._pair(index)
            middle, stop = len(first) + 2, len(first) + len(second) + 3
            ids[row, :stop] = [special.cls, *first, special.sep, *second, special.sep]
            mask[row, :stop] = 1
            types[row, middle:stop] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, self._labels: swapped}

    def _pair(self, index: int) -> Pair:
        """Return a pair, cached until a batch of others was requested, because the loop requests lengths and texts several times per
        step."""
        if index not in self._recent:
            while len(self._recent) >= self.batch_size:
                del self._recent[next(iter(self._recent))]
            self._recent[index] = self._draw_pair(index)
        return self._recent[index]

    def _draw_pair(self, index: int) -> Pair:
        """Return the two segments of a pair, and whether they are swapped or of two documents."""
        epoch, sequence = divmod(index, self.count)
        run = self._run(self.first + sequence)
        text, boundaries = run.text, run.boundaries
        rng = np.random.default_rng([_STREAM, self.seed % 2**64, epoch, sequence])
        fraction, swap = rng.random(2)
        split = boundaries[int(fraction * len(boundaries))]
        one, other = text[:split], text[split:]
        if swap >= SWAPPED:
            return one, other, False
        if self._labels == "sentence_order":
            return other, one, True
        drawn = rng.integers(0, self.count, _DRAWS)
        room = self.length - 3 - len(one)
        foreign = self._end_of_other_document(self.first + sequence, len(other), room if run.sentences else None, drawn)
        return (one, other, False) if foreign is None else (one, foreign, True)

    def _end_of_other_document(
        self, sequence: int, length: int, room: int | None, drawn: np.ndarray
    ) -> np.ndarray | None:
        """Return, from the `drawn` sequences of other documents, the end whose length is nearest to `length`; None if there is none.

        Whole sentences of at most `room` tokens; `room` None: the last `length` tokens of a sequence cut anywhere.
        """
        document, best, distance = self._document(sequence), None, self.length
        for each in (self.first + drawn).tolist():
            if self._document(each) == document:
                continue
            text, boundaries, sentences = self._run(each, whole=room is not None)
            if room is None and len(text) > length:
                return text[-length:]
            if room is None or not sentences:
                continue
            sizes = len(text) - boundaries
            gaps = np.where(sizes <= room, np.abs(sizes - length), self.length)
            nearest = int(gaps.argmin())
            if gaps[nearest] < distance:
                best, distance = text[boundaries[nearest] :], int(gaps[nearest])
            if distance == 0:
                break
        return best

    def _document(self, sequences: Any) -> Any:
        return np.searchsorted(self._first, sequences, side="right") - 1

    def _run(self, sequence: int, *, whole: bool = True) -> _Run:
        """Return the text of a sequence; `whole`: whole sentences if two fit."""
        room = self.length - 3
        document = int(self._document(sequence))
        size, last = int(self._sizes[document]), int(self._first[document + 1] - self._first[document] - 1)
        start = (size - room) * (sequence - int(self._first[document])) // last if last else 0
        text = self.shards.read(int(self._starts[document]) + start, min(2 * room, size - start))
        if whole:
            marks = self._boundaries(text, start == 0, start + len(text) == size)
            fitting = marks[marks <= marks[0] + room] if len(marks) and marks[0] < room else marks[:0]
            if len(fitting) > 2:
                return _Run(text[fitting[0] : fitting[-1]], fitting[1:-1] - fitting[0], True)
        text = text[:room]
        return _Run(text, np.arange(1, len(text)), False)

    def _boundaries(self, text: np.ndarray, begins: bool, ends: bool) -> np.ndarray:
        """Return positions in `text` between sentences, and at edges of the document."""
        marked = self._ends_sentence[text]
        between = np.flatnonzero(marked[:-1] & ~marked[1:]) + 1
        return np.concatenate([[0] if begins else [], between, [len(text)] if ends else []]).astype(np.int64)


def _documents(shards: TokenShards) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of the first token, and the number of tokens without the final [SEP], of every document that gives a pair."""
    stops = np.append(shards.ends, len(shards))  # the last may be truncated
    starts = np.concatenate([[0], stops[:-1] + 1]).astype(np.int64)
    sizes = stops - starts
    return starts[sizes >= LEAST], sizes[sizes >= LEAST]
