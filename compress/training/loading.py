"""Batches that a thread collates while a GPU computes on the previous ones."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import numpy as np

from ..losses.loss import MeanOver

Arrays = dict[str, np.ndarray]


class Batches(Protocol):
    """Training data, a batch per optimizer step, in an order that depends on the seed alone.

    Examples are identified by int64 ids; `len` is the number of batches in one epoch. Methods are pure functions of their arguments.
    """

    seed: int

    def __len__(self) -> int: ...

    def indices(self, step: int) -> np.ndarray:
        """Return the ids of the examples of optimizer step `step`, counted from 0 over all epochs."""
        ...

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Return the number of real tokens of each."""
        ...

    def collate(self, indices: np.ndarray) -> Arrays:
        """Return `input_ids`, `attention_mask` and `token_type_ids` [batch, length], and `labels` if there are any."""
        ...


@runtime_checkable
class Labelled(Protocol):
    """Batches whose tokens have labels."""

    def counts(self, unit: MeanOver, indices: np.ndarray) -> np.ndarray:
        """Return for each example how much it adds to the number of `unit` in a batch: tokens that are masked, labelled, or compared
        between student and teacher; or, of a group of examples, the group once."""
        ...


@runtime_checkable
class Grouped(Protocol):
    """Batches with groups of examples that must go through one forward."""

    def groups(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the number of each example's group, int64; members of a group are adjacent. None: examples are independent."""
        ...


class Loader:
    """Wraps `data`; `prefetch` starts to collate the next request.

    Only one thread at a time uses `data`, which may cache its last batch. Without `ahead`, nothing is collated in advance: use that on a
    CPU, whose cores are busy anyway. Nothing needs to be saved, because a resumed run requests batches by step number.
    """

    def __init__(self, data: Batches, *, ahead: bool) -> None:
        self._data, self.seed, self._lock = data, data.seed, Lock()
        self._pool = ThreadPoolExecutor(1, "collate") if ahead else None
        self._expected: tuple[np.ndarray, Future[Arrays]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread, after the batch that it is collating."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def __len__(self) -> int:
        return len(self._data)

    def indices(self, step: int) -> np.ndarray:
        with self._lock:
            return self._data.indices(step)

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        with self._lock:
            return self._data.lengths(indices)

    def groups(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the groups, as in `Grouped`."""
        return self._data.groups(indices) if isinstance(self._data, Grouped) else None

    def count(self, unit: MeanOver, indices: np.ndarray) -> float:
        """Return how many of `unit` the examples have."""
        if unit == "examples":
            return len(indices)
        if unit == "tokens" or not isinstance(self._data, Labelled):
            return float(self.lengths(indices).sum())
        with self._lock:
            return float(self._data.counts(unit, indices).sum())

    def prefetch(self, indices: np.ndarray | None) -> None:
        """Start to collate these examples; None: the next ones are not known."""
        if self._pool is not None and indices is not None:
            self._expected = indices, self._pool.submit(self._collate, indices)

    def collate(self, indices: np.ndarray) -> Arrays:
        """Return the collated examples, or raise what collating them raised, in whichever thread. Other expected batches are dropped."""
        expected, self._expected = self._expected, None
        if expected is not None and np.array_equal(expected[0], indices):
            return expected[1].result()
        return self._collate(indices)

    def _collate(self, indices: np.ndarray) -> Arrays:
        with self._lock:
            return self._data.collate(indices)
