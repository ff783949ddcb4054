"""Batches that are made in a thread while a GPU computes with the ones before."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import numpy as np

from ..losses.loss import Unit

Arrays = dict[str, np.ndarray]


class Batches(Protocol):
    """What is trained on, a batch per optimizer step, in an order that depends on the seed alone.

    Examples are named by int64 ids; `len` is the batches of one epoch. What a method returns depends on its arguments alone.
    """

    seed: int

    def __len__(self) -> int: ...

    def indices(self, step: int) -> np.ndarray:
        """Ids of the examples of optimizer step `step`, counted from 0 over all epochs."""
        ...

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Real tokens of each."""
        ...

    def collate(self, indices: np.ndarray) -> Arrays:
        """`input_ids`, `attention_mask` and `token_type_ids` [batch, length], and `labels` where there are some."""
        ...


@runtime_checkable
class Labelled(Protocol):
    """Batches whose tokens have labels."""

    def counts(self, unit: Unit, indices: np.ndarray) -> np.ndarray:
        """Of each example the tokens that have a label, or that student and teacher are compared at."""
        ...


@runtime_checkable
class Grouped(Protocol):
    """Batches of which what stands together must go through one forward."""

    def groups(self, indices: np.ndarray) -> np.ndarray | None:
        """The number of each example's group, int64; those of a group stand side by side. None: no example needs another."""
        ...


class Loader:
    """`data`, of which `expect` begins to collate what will be asked for next. One thread at a time uses `data`, which may keep
    what it made last. Without `ahead`, as on a CPU, whose cores have enough to do, nothing is made before it is asked for.

    Nothing of it needs to be saved: a resumed run asks by the number of its step.
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
        """The thread ends, at the latest with the batch that it is at."""
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
        """As `Grouped` has it."""
        return self._data.groups(indices) if isinstance(self._data, Grouped) else None

    def count(self, unit: Unit, indices: np.ndarray) -> float:
        """How many of `unit` the examples hold."""
        if unit == "examples":
            return len(indices)
        if unit == "tokens" or not isinstance(self._data, Labelled):
            return float(self.lengths(indices).sum())
        with self._lock:
            return float(self._data.counts(unit, indices).sum())

    def expect(self, indices: np.ndarray | None) -> None:
        """Begin to collate these; None: nothing more is known."""
        if self._pool is not None and indices is not None:
            self._expected = indices, self._pool.submit(self._collate, indices)

    def collate(self, indices: np.ndarray) -> Arrays:
        """Raises what the collation raised, whichever thread did it. What was expected in vain is dropped."""
        expected, self._expected = self._expected, None
        if expected is not None and np.array_equal(expected[0], indices):
            return expected[1].result()
        return self._collate(indices)

    def _collate(self, indices: np.ndarray) -> Arrays:
        with self._lock:
            return self._data.collate(indices)
