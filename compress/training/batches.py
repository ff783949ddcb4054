"""What the loop asks of its data."""

from typing import Protocol

import numpy as np


class Batches(Protocol):
    """What is trained on, a batch per optimizer step, in an order that depends on the seed alone.

    Examples are named by int64 ids; `len` is the batches of one epoch.
    """

    seed: int

    def __len__(self) -> int: ...

    def indices(self, step: int) -> np.ndarray:
        """Ids of the examples of optimizer step `step`, counted from 0 over all epochs."""
        ...

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Real tokens of each."""
        ...

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """`input_ids`, `attention_mask` and `token_type_ids` [batch, length], and `labels` where there are some."""
        ...
