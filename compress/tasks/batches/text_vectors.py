"""Token ids of text pairs for sentence encoders; each text is a row of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..kinds.embedding import pair_vectors, vectors_of
from .encoded import Encoded


@dataclass(frozen=True)
class EncodedTexts(Encoded):
    """Row i is the first text of pair i, row n + i its second, for n pairs. `labels` are float32 [pair]."""

    def collected(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return float32 [pair, 1 + 2 · width] from rows and their vectors [row, width] of length 1, in any order: the cosine, and both
        vectors."""
        vectors = np.zeros((0, 0), np.float32)
        for rows, batch_vectors in parts:
            vectors = vectors if vectors.size else np.zeros((len(self), batch_vectors.shape[1]), np.float32)
            vectors[rows] = batch_vectors
        return pair_vectors(vectors)

    def by_row(self, outputs: np.ndarray) -> np.ndarray:
        """Return [row, width] from outputs as returned by `collected`."""
        return vectors_of(outputs)

    def take(self, indices: np.ndarray) -> EncodedTexts:
        """Return the pairs that have one of these rows, in their original order."""
        pairs = np.unique(np.asarray(indices) % len(self.labels))
        rows = np.concatenate([pairs, pairs + len(self.labels)])
        return EncodedTexts(*self._rows(rows), self.labels[pairs])

    def concat(self, other: Encoded) -> EncodedTexts:
        own_pairs, other_pairs = len(self.labels), len(other.labels)

        def joined(own: list[np.ndarray], others: list[np.ndarray]) -> list[np.ndarray]:
            return [*own[:own_pairs], *others[:other_pairs], *own[own_pairs:], *others[other_pairs:]]

        ids, types = joined(self.input_ids, other.input_ids), joined(self.token_type_ids, other.token_type_ids)
        return EncodedTexts(ids, types, np.concatenate([self.labels, other.labels]))

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Return {}: scores are of pairs, and no loss reads them."""
        return {}
