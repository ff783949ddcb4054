"""Masked language modelling: which tokens are masked, and their labels (Devlin et al. 2018, §3.1)."""

from __future__ import annotations

import numpy as np

from ..errors import CompressError
from ..losses.loss import MeanOver
from ..losses.masked_lm import IGNORED
from .batches import TextBatches

SELECTED = 0.15  # of the non-special tokens
MASKED, REPLACED = 0.8, 0.1  # of the selected tokens; the rest is unchanged
_STREAM = 0x6D61736B  # separates these draws from those that order the sequences


class MaskedBatches:
    """`TextBatches`, or `PairBatches`, with masked tokens: `labels` int64 [batch, length] are the masked ones, -100 elsewhere.

    Masking is dynamic: it depends only on (seed, epoch, sequence), so an id is epoch · sequences + sequence. With `masks`, it is that of
    epoch modulo `masks`. Each non-special token is selected with probability 0.15, at least one per sequence; of the selected, 80 % become
    [MASK], 10 % a random non-special token, and 10 % are unchanged. `continues` (bool [vocabulary]): tokens that continue a word, which are
    selected with its first. Raises `CompressError` without a mask token.
    """

    def __init__(self, text: TextBatches, *, masks: int | None = None, continues: np.ndarray | None = None) -> None:
        special = text.shards.special
        if special.mask is None:
            raise CompressError("the tokenizer has no [MASK] or <mask> token; masked-LM training needs one")
        self.text, self.seed, self.mask_id = text, text.seed, special.mask
        self._masks, self._continues = masks, continues
        self._special = np.array(special.every, np.int64)
        self._ordinary = np.setdiff1d(np.arange(text.shards.vocabulary), self._special)

    def __len__(self) -> int:
        return len(self.text)

    def indices(self, step: int) -> np.ndarray:
        return self.text.indices(step) % self.text.count + step // len(self.text) * self.text.count

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.text.lengths(indices)

    def counts(self, unit: MeanOver, indices: np.ndarray) -> np.ndarray:
        """Return for each sequence the number of its masked tokens; of other units, of its tokens."""
        if unit != "masked_tokens":
            return self.lengths(indices)
        return self._select(self.text.collate(indices)["input_ids"], self._draws(indices)[0]).sum(axis=1)

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Return the batch of `text`, with masked `input_ids`, `labels`, and `masked`, int64 [position]: indices of masked tokens in the
        flattened `labels`."""
        batch = self.text.collate(indices)
        ids, draws = batch["input_ids"], self._draws(indices)
        selected = self._select(ids, draws[0])
        labels = np.where(selected, ids, IGNORED)
        masked = selected & (draws[1] < MASKED)
        replaced = selected & ~masked & (draws[1] < MASKED + REPLACED)
        random = self._ordinary[(draws[2] * len(self._ordinary)).astype(np.int64)]
        ids[masked] = self.mask_id
        ids[replaced] = random[replaced]
        return batch | {"labels": labels, "masked": np.flatnonzero(selected)}

    def _draws(self, indices: np.ndarray) -> np.ndarray:
        """Return uniform draws from [0, 1), [3, batch, length]: whether a token is selected, what happens to it, what replaces it."""
        epochs, sequences = np.divmod(indices, self.text.count)
        rounds = epochs % self._masks if self._masks else epochs
        shape = 3, self.text.length
        rows = [
            np.random.default_rng([_STREAM, self.seed % 2**64, epoch, sequence]).random(shape)
            for epoch, sequence in zip(rounds.tolist(), sequences.tolist(), strict=True)
        ]
        return np.stack(rows, axis=1)

    def _select(self, ids: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return which tokens are selected, bool [batch, length]; if no draw is low enough, the lowest."""
        special = np.isin(ids, self._special)
        draws = np.where(special, 1.0, draws)
        if self._continues is not None:
            draws = _of_first_pieces(draws, self._continues[ids], special)
        lowest = draws.min(axis=1, keepdims=True)
        return (draws < SELECTED) | ((draws == lowest) & (lowest < 1))


def _of_first_pieces(draws: np.ndarray, continues: np.ndarray, special: np.ndarray) -> np.ndarray:
    """Return `draws` [batch, length] with each token's replaced by that of its word's first piece; a word cut at its start, after a special
    token, begins with its first remaining piece."""
    begins = ~continues
    begins[:, 1:] |= special[:, :-1]
    places = np.where(begins, np.arange(draws.shape[1]), 0)
    return np.take_along_axis(draws, np.maximum.accumulate(places, axis=1), axis=1)
