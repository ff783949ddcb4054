"""Full sequences of plain text for the training loop: no padding, an order that depends on (seed, epoch) alone."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from compress.errors import CompressError

from .shards import TokenShards

SHORTEST = 8


class TextBatches:
    """Sequences of `length` tokens: [CLS], the next `length` - 2 tokens of the corpus, [SEP].

    Every token of the corpus is in one sequence, but for a tail too short to fill one; documents run on within a
    sequence, [SEP] between them. Ids are sequence numbers in text order. Each epoch has its own permutation; its
    last batch may be smaller. Raises `CompressError` when the text does not fill one batch.
    """

    def __init__(self, shards: TokenShards, *, length: int, batch_size: int, seed: int) -> None:
        if length < SHORTEST:
            raise CompressError(f"length is {length} tokens; expected at least {SHORTEST}")
        if batch_size < 1:
            raise CompressError(f"batch_size is {batch_size}; expected at least 1")
        self.shards, self.length, self.batch_size, self.seed = shards, length, batch_size, seed
        self.count, self.first = self._sequences(), 0
        self._check_enough()
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    def held_out(self, share: float) -> tuple[Self, Self | None]:
        """What is trained on, and the last `share` of the sequences, in batches of their own: None where that is not one.

        Raises `CompressError` when too few are left for a batch.
        """
        count = round(share * self.count)
        train, held = copy(self), copy(self)
        train.count, held.count, held.first = self.count - count, count, self.first + self.count - count
        held.batch_size = min(self.batch_size, count)
        train._check_enough()
        return train, held if count else None

    def _sequences(self) -> int:
        return len(self.shards) // (self.length - 2)

    def _check_enough(self) -> None:
        if self.count < self.batch_size:
            raise CompressError(
                f"the corpus has {len(self.shards):,} tokens; a batch of {self.batch_size} sequences of {self.length} "
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

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.full(len(indices), self.length, dtype=np.int64)

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """`input_ids`, `attention_mask` (ones) and `token_type_ids` (zeros), int64 [batch, length].

        An id beyond the sequences is one of a later epoch.
        """
        ids = np.empty((len(indices), self.length), np.int64)
        ids[:, 0], ids[:, -1] = self.shards.special.cls, self.shards.special.sep
        for row, index in enumerate(indices):
            sequence = self.first + int(index) % self.count
            ids[row, 1:-1] = self.shards.read(sequence * (self.length - 2), self.length - 2)
        return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}

    def sample(self, count: int) -> list[dict[str, np.ndarray]]:
        """The first `count` sequences that training meets (all, where there are fewer), in batches."""
        chosen = np.concatenate([self.indices(step) for step in range(-(-min(count, self.count) // self.batch_size))])
        chosen = chosen[:count]
        starts = range(0, len(chosen), self.batch_size)
        return [self.collate(chosen[start : start + self.batch_size]) for start in starts]
