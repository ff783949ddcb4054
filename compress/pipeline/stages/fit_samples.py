"""The training examples on which a model is judged and repaired by forwards alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...models.heads import Head
from ...tasks import TaskBatches, sorted_chunks

if TYPE_CHECKING:
    import torch

    from ...models.features.named import Batch

BATCH = 32  # examples
# The repair holds the states of two models, and the targets of two matrices: 0.8 GB at width 768.
_MOST_TOKENS = 65_536


def reads_first_token(head: Head) -> bool:
    """Whether the head reads only the first token of the last layer."""
    return not (head.per_token or head.bare)


@dataclass(frozen=True)
class FitRows:
    """Rows for a fit. `held`: as many as fit in memory; `further`: more rows for the last layer alone, none if the head reads all of its
    tokens."""

    held: np.ndarray
    further: np.ndarray

    def __len__(self) -> int:
        return len(self.held) + len(self.further)


def first_rows(data: TaskBatches, examples: int) -> np.ndarray:
    """Return the rows of a first epoch's batches, as many batches as have `examples` rows; all rows, if there are fewer."""
    batches: list[np.ndarray] = []
    while len(batches) < len(data) and sum(map(len, batches)) < examples:
        batches.append(data.indices(len(batches)))
    return np.concatenate(batches)


def fit_rows(data: TaskBatches, examples: int, head: Head) -> FitRows:
    """Return the `examples` rows that a first epoch begins with."""
    rows = first_rows(data, examples)[:examples]
    held = max(1, int(np.searchsorted(np.cumsum(data.lengths(rows)), _MOST_TOKENS, side="right")))
    return FitRows(rows[:held], rows[held:] if reads_first_token(head) else rows[:0])


def fit_batches(data: TaskBatches, rows: np.ndarray, device: torch.device) -> Iterator[Batch]:
    from ...models.features.predict import to_tensors

    for chunk in sorted_chunks(data.lengths(rows)):
        yield to_tensors(data.collate(rows[chunk]), device)
