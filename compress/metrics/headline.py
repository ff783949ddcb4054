"""The interface of a task's headline score for significance tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ..errors import CompressError

# If two models differ on fewer examples, all changes go one way by chance more often than once in twenty
# (2 · 2⁻⁵ = 0.0625), so no metric can tell the models apart.
FEWEST = 6
CHUNK = 200_000  # numbers in memory at a time: 1.6 MB, small enough to stay in the cache

Pairs = Sequence[tuple[np.ndarray, np.ndarray]]  # outputs [example, output] of (base, other), for every training seed


class Headline(ABC):
    """A task's headline score in points: the mean of its `metrics`, named as in a task file."""

    metrics: tuple[str, ...]

    @abstractmethod
    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        """Return points. Raises `CompressError` if there are no examples, or `gold` has another number."""

    @abstractmethod
    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return whether the metrics distinguish the two answers to each example, bool [example]."""

    @abstractmethod
    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        """Return which answers are right, bool [example], if the score is their share and examples are drawn independently; None
        otherwise."""

    @abstractmethod
    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points [2 · seed, sample] of base, other, base … on resampled examples, the same ones for all of them."""

    def count_changed(self, pairs: Pairs, gold: np.ndarray) -> int:
        """Return the number of units drawn in a resample, examples or their texts, that base and other answer differently in any seed."""
        return int(np.any([self.differ(base, other) for base, other in pairs], axis=0).sum())


def check_lengths(gold: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
    """Raise `CompressError` if `outputs` and `gold` have different numbers of examples, or none."""
    lengths = sorted({len(output) for output in outputs})
    if not len(gold) or lengths != [len(gold)]:
        raise CompressError(
            f"expected predictions for each of the {len(gold):,} examples (at least 1), found {lengths}"
        )


def check_names(names: tuple[str, ...], known: Sequence[str]) -> None:
    """Raise `CompressError` if `names` is empty or not all are in `known`."""
    if not names or not set(names) <= set(known):
        raise CompressError(f"expected metrics of one kind, among {', '.join(known)}; found {list(names)}")
