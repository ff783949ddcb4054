"""The training examples that judge and repair a model by forwards alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...models.heads import Head
from ...tasks import TaskBatches, sorted_chunks

if TYPE_CHECKING:
    import torch

    from ...models.features import Batch

BATCH = 32  # examples
# In the repair two models' states are held, and the targets of two matrices: 0.8 GB at 768 a token.
_MOST_TOKENS = 65_536


def reads_first(head: Head) -> bool:
    """Whether the head reads no token of the last layer but the first."""
    return not (head.per_token or head.bare)


@dataclass(frozen=True)
class FitRows:
    """`held`: no more than fit the memory; `further`: those that the last layer is fitted to besides, none where the head reads all of
    its tokens."""

    held: np.ndarray
    further: np.ndarray

    def __len__(self) -> int:
        return len(self.held) + len(self.further)


def fit_rows(data: TaskBatches, examples: int, head: Head) -> FitRows:
    """Those that a first epoch begins with."""
    rows = np.concatenate([data.indices(step) for step in range(min(len(data), math.ceil(examples / BATCH)))])[
        :examples
    ]
    held = max(1, int(np.searchsorted(np.cumsum(data.lengths(rows)), _MOST_TOKENS, side="right")))
    return FitRows(rows[:held], rows[held:] if reads_first(head) else rows[:0])


def fit_batches(data: TaskBatches, rows: np.ndarray, device: torch.device) -> Iterator[Batch]:
    from ...models.predict import to_tensors

    for chunk in sorted_chunks(data.lengths(rows)):
        yield to_tensors(data.collate(rows[chunk]), device)
