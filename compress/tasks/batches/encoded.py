"""Token ids of a split: rows of different lengths, and the labels that models' outputs are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np

from ...losses.loss import MeanOver

ENCODE_AT_ONCE = 4096  # texts; bounds the memory of the tokenizer's own objects


@dataclass(frozen=True)
class Encoded:
    """Ragged token ids of one split, in its order: int32 ids and int8 segment ids, unpadded. A row is an example, `labels` are what outputs
    are compared with (`Labels.gold`)."""

    input_ids: list[np.ndarray]
    token_type_ids: list[np.ndarray]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.input_ids)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens per row, special tokens included, int64 [row]."""
        return np.array([len(ids) for ids in self.input_ids], dtype=np.int64)

    def _rows(self, indices: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return [self.input_ids[index] for index in indices], [self.token_type_ids[index] for index in indices]

    def take(self, indices: np.ndarray) -> Self:
        """Return only these rows, in this order."""
        return type(self)(*self._rows(indices), self.labels[indices])

    def concat(self, other: Encoded) -> Self:
        """Return the rows of both, in this order."""
        return type(self)(*self._joined(other))

    def _joined(self, other: Encoded) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        ids, types = [*self.input_ids, *other.input_ids], [*self.token_type_ids, *other.token_type_ids]
        return ids, types, np.concatenate([self.labels, other.labels])

    def collected(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return float32 [example, output] from rows and their outputs [row, output], in any order; before thresholds (`decided`)."""
        outputs = np.zeros((0, 0), np.float32)
        for rows, batch_outputs in parts:
            outputs = outputs if outputs.size else np.zeros((len(self), batch_outputs.shape[1]), np.float32)
            outputs[rows] = batch_outputs
        return outputs

    def decided(self, outputs: np.ndarray, threshold: float | np.ndarray) -> np.ndarray:
        """Return `collected` outputs in the form that is scored: shifted so that the decision at `threshold`, a number or [label], is at
        0."""
        return outputs - np.asarray(threshold, outputs.dtype) if np.any(threshold) else outputs

    def by_row(self, outputs: np.ndarray) -> np.ndarray:
        """Return what a student learns from a teacher's `collected` outputs, [row, output] or [word, label]."""
        return outputs

    def counts(self, unit: MeanOver, indices: np.ndarray) -> np.ndarray:
        """Return for each of these rows the number of tokens that have a label or are compared between student and teacher; or how much it
        adds to the number of `unit` that losses are means over."""
        return self.lengths[indices]

    def groups(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the group number of each of these rows, int64, if training must not separate groups."""
        return None

    def stratified(self, count: int) -> np.ndarray:
        """Return at most `count` rows, int64, evenly spread over the rows sorted by length."""
        order = np.argsort(self.lengths, kind="stable")
        return order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]

    def stratified_groups(self, count: int) -> np.ndarray:
        """Like `stratified`, with whole groups of rows if scores are per group."""
        return self.stratified(count)

    def compared_by_answers(self) -> Self:
        """Return the form for a student that has another tokenizer than its teacher, or reads a table of answers."""
        return self

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Return the targets of a batch of these rows, padded to `length`."""
        return {"labels": self.labels[indices]}


def ragged_rows(rows: list[list[int]], lengths: list[int], dtype: type) -> list[np.ndarray]:
    """Return the rows as views of one flat array, which takes a tenth of the memory of separate small arrays."""
    flat = np.fromiter(chain.from_iterable(rows), dtype=dtype, count=sum(lengths))
    ends = np.cumsum(lengths).tolist()
    return [flat[end - length : end] for end, length in zip(ends, lengths, strict=True)]
