"""The token budget: how large a model run should be on this machine, found by timing and remembered.

Large runs spread over threads and pay the cost of a call once; small ones stay in the cache and are
padded less. Which wins depends on the model, the CPU, the threads and the runtime, and on nothing else, so a search is
made once for these four, when a classifier has answered so much that it adds at most a quarter to the work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from .engine import Engine
from .remembered import identity, recall, remember

BUDGETS = (128, 256, 512, 1024, 2048, 4096)  # tokens of a model run, padding included
DEFAULT = 512  # before a search, and where no other is clearly faster
RUNS = 8  # at least, for a window: with fewer, sorted texts are padded by more than a tenth
LENGTHS = (16, 48)  # of the sequences that are timed
REPEATS = 2  # the faster counts: the first may be slow for other reasons
CLEARLY = 0.92  # of the default's time: on a busy machine less is noise
SEARCH = sum(BUDGETS) * len(LENGTHS) * REPEATS  # tokens that a search runs
WORTH = 4 * SEARCH  # tokens to have answered before one is made
NOTICEABLE = 4096  # tokens of a window below which the budget hardly matters and nothing is read


class Budget:
    """The budget of one engine. May be used from several threads: one searches, the others wait for it."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self._engine = engine
        self._threads = threads
        self._lock = threading.Lock()
        self._answered = 0
        self._asked = False
        self._key: dict[str, str | int] | None = None
        self.found: int | None = None

    def tokens(self, ids: Callable[[], Iterable[list[int]]], size: int) -> int:
        """The budget for a window of `size` tokens; its `ids` serve for timing if a search is due."""
        return bounded(self._fastest(ids, size), size)

    def _fastest(self, ids: Callable[[], Iterable[list[int]]], size: int) -> int:
        if self.found is not None or size < NOTICEABLE:
            return self.found or DEFAULT
        with self._lock:
            if not self._asked:
                self._asked = True
                self._key = identity(self._engine, self._threads)
                self.found = recall(self._key, BUDGETS) if self._key else None
            self._answered += size
            if self.found is None and self._answered > WORTH:
                flat = np.concatenate([np.array(one) for one in ids()])
                self.found = fastest(lambda rows, length: self._seconds(flat, rows, length), max(map(len, ids())))
                if self._key:
                    remember(self._key, self.found)
            return self.found or DEFAULT

    def _seconds(self, flat: np.ndarray, rows: int, length: int) -> float:
        """Wall-clock time of one run; the values are real token ids, in sequences without padding."""
        ids = np.resize(flat, (rows, length))
        values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        batch = {name: values[name].astype(kind) for name, kind in self._engine.inputs.items()}
        started = time.perf_counter()
        self._engine.run(batch)
        return time.perf_counter() - started


def bounded(tokens: int, size: int) -> int:
    """`tokens`, or less where a window of `size` tokens would make fewer than `RUNS` runs of it."""
    return min(tokens, max(size // RUNS, BUDGETS[0]))


def fastest(seconds: Callable[[int, int], float], longest: int) -> int:
    """The budget with the least time for a token, by `seconds(rows, length)` at each of `LENGTHS` up to `longest`.

    The default, unless another one is clearly faster.
    """
    lengths = {min(length, longest) for length in LENGTHS}
    costs = dict.fromkeys(BUDGETS, 0.0)
    for length in sorted(lengths):
        cost = dict(_costs(seconds, length))
        for budget in BUDGETS:
            costs[budget] += cost[budget] / cost[DEFAULT] / len(lengths)
    best = min(BUDGETS, key=lambda budget: costs[budget])
    return best if costs[best] < CLEARLY else DEFAULT


def _costs(seconds: Callable[[int, int], float], length: int) -> Iterator[tuple[int, float]]:
    for budget in BUDGETS:
        rows = max(1, budget // length)
        yield budget, min(seconds(rows, length) for _ in range(REPEATS)) / (rows * length)
