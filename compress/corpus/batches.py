"""Full sequences of plain text for the training loop: no padding, in an order that depends only on (seed, epoch)."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from ..errors import CompressError
from .shards import TokenShards

SHORTEST = 8
_READ_AT_ONCE = 1 << 22  # tokens


class TextBatches:
    """Sequences of `length` tokens: [CLS], the next `length` - 2 tokens of the corpus, [SEP].

    Every token of the corpus is in one sequence, except a tail too short to fill one; documents continue within a sequence, separated by
    [SEP]. Ids are sequence numbers in text order. Each epoch has its own permutation; its last batch may be smaller. Raises `CompressError`
    if the text does not fill one batch.

    `separate_documents`: these are masked from each other (Krell et al. 2021, arXiv:2107.02027, §3.2). Each document then starts with
    [CLS], so that a sequence contains [CLS] document [SEP], as if alone; the first and last document of a sequence may be incomplete.
    Batches have `documents`, which number them.
    """

    def __init__(
        self, shards: TokenShards, *, length: int, batch_size: int, seed: int, separate_documents: bool = False
    ) -> None:
        if length < SHORTEST:
            raise CompressError(
                f"max_length is {length} tokens; expected at least {SHORTEST} for a sequence of plain text"
            )
        self.shards, self.length, self.batch_size, self.seed = shards, length, batch_size, seed
        self._begins = _cls_positions(shards) if separate_documents else None
        self.count, self.first = self._sequences(), 0
        self._check_enough()
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    def held_out(self, share: float) -> tuple[Self, Self | None]:
        """Return the training sequences, and the last `share` of the sequences in batches of their own, or None if that is less than one
        sequence.

        Raises `CompressError`, naming the setting `held_out`, if too few are left for a batch.
        """
        count = round(share * self.count)
        train, held = copy(self), copy(self)
        train.count, held.count, held.first = self.count - count, count, self.first + self.count - count
        held.batch_size = min(self.batch_size, count)
        if train.count < train.batch_size:
            raise CompressError(
                f"held_out keeps {count:,} of the {self.count:,} sequences of {self.length} tokens from training, and a batch "
                f"needs {self.batch_size} of the {train.count:,} that are left: give more text, or lower held_out or batch_size"
            )
        return train, held if count else None

    def _sequences(self) -> int:
        return self._tokens // (self.length - 2)

    @property
    def _tokens(self) -> int:
        return len(self.shards) + (0 if self._begins is None else len(self._begins))

    def _check_enough(self) -> None:
        if self.count < self.batch_size:
            raise CompressError(
                f"the corpus has {self._tokens:,} tokens; a batch of {self.batch_size} sequences of {self.length} "
                f"needs {self.batch_size * (self.length - 2):,}: give more text, or choose a smaller batch_size"
            )

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def indices(self, step: int) -> np.ndarray:
        epoch, position = divmod(step, len(self))
        if epoch != self._epoch:
            order = np.random.default_rng([self.seed % 2**64, epoch]).permutation(self.count)
            self._epoch, self._order = epoch, order
        return self._order[position * self.batch_size : (position + 1) * self.batch_size]

    def tokens(self) -> np.ndarray:
        """Return the ids that occur in the corpus, and all special ones, as ascending int64."""
        special, occurrence = self.shards.special, np.zeros(self.shards.vocabulary, bool)
        for number in (special.cls, special.sep, special.pad, *special.every):
            if number is not None:
                occurrence[number] = True
        for start in range(0, len(self.shards), _READ_AT_ONCE):
            occurrence[self.shards.read(start, _READ_AT_ONCE)] = True
        return np.flatnonzero(occurrence)

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.full(len(indices), self.length, dtype=np.int64)

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Return `input_ids`, `attention_mask` (ones) and `token_type_ids` (zeros), int64 [batch, length].

        With `separate_documents` also `documents`, int64 [batch, length]: each token's document within its sequence, from 0; a document
        includes the [SEP] after it. Ids beyond the sequences belong to later epochs.
        """
        ids = np.empty((len(indices), self.length), np.int64)
        ids[:, 0], ids[:, -1] = self.shards.special.cls, self.shards.special.sep
        begins = np.zeros_like(ids)
        for row, index in enumerate(indices):
            ids[row, 1:-1], places = self._read(self.first + int(index) % self.count)
            begins[row, 1 + places] = 1
        batch = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return batch if self._begins is None else batch | {"documents": begins.cumsum(axis=1)}

    def _read(self, sequence: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens between the first and last token of a sequence, and the positions of [CLS] at document starts."""
        room = self.length - 2
        start = sequence * room
        if self._begins is None:
            return self.shards.read(start, room), np.zeros(0, np.int64)
        before, after = np.searchsorted(self._begins, (start, start + room))
        begins = self._begins[before:after] - start
        text = self.shards.read(start - int(before), room - len(begins))
        return np.insert(text, begins - np.arange(len(begins)), self.shards.special.cls), begins

    def sample(self, count: int) -> list[dict[str, np.ndarray]]:
        """Return the first `count` sequences of training (all, if there are fewer), in batches, without `documents`: what reads a sample
        observes activations layer by layer, and supports only padding."""
        chosen = np.concatenate([self.indices(step) for step in range(-(-min(count, self.count) // self.batch_size))])
        chosen = chosen[:count]
        starts = range(0, len(chosen), self.batch_size)
        batches = [self.collate(chosen[start : start + self.batch_size]) for start in starts]
        return [{name: batch[name] for name in batch if name != "documents"} for batch in batches]


def _cls_positions(shards: TokenShards) -> np.ndarray:
    """Return the positions of [CLS] in the text with one before every document except the first, as ascending int64."""
    inside = shards.ends[shards.ends < len(shards) - 1]
    return inside + 1 + np.arange(len(inside))
