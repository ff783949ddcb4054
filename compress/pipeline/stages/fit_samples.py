"""The training examples that judge and repair a model by forwards alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
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


def fit_rows(data: TaskBatches, examples: int) -> np.ndarray:
    """Those that a first epoch begins with, no more than fit the memory."""
    rows = np.concatenate([data.indices(step) for step in range(min(len(data), math.ceil(examples / BATCH)))])[
        :examples
    ]
    return rows[: max(1, int(np.searchsorted(np.cumsum(data.lengths(rows)), _MOST_TOKENS, side="right")))]


def fit_batches(data: TaskBatches, rows: np.ndarray, device: torch.device) -> Iterator[Batch]:
    from ...models.predict import to_tensors

    for chunk in sorted_chunks(data.lengths(rows)):
        yield to_tensors(data.collate(rows[chunk]), device)
