"""What significance asks of a task's headline score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ..errors import CompressError

# Of fewer examples on which two models differ, all changes go one way by chance more often than once in twenty
# (2 · 2⁻⁵ = 0.0625): no metric tells the models apart.
FEWEST = 6
CHUNK = 200_000  # numbers held at a time: 1.6 MB, small enough to stay in the cache

Pairs = Sequence[tuple[np.ndarray, np.ndarray]]  # outputs [example, output] of (base, other), for every training seed


class Headline(ABC):
    """A task's headline score in points: the mean of its `metrics`, named as in a task file."""

    metrics: tuple[str, ...]

    @abstractmethod
    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        """Points. CompressError: no examples, or `gold` is of another number."""

    @abstractmethod
    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Whether the metrics see two different answers to an example, bool [example]."""

    @abstractmethod
    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        """Which answers are right, bool [example], where the score is the share of these and each is drawn for itself; None for any
        other."""

    @abstractmethod
    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Points [2 · seed, sample] of base, other, base … on resampled examples, the same ones for all of them."""

    def changed(self, pairs: Pairs, gold: np.ndarray) -> int:
        """What is drawn in a resample, examples or the texts that they are of, and base and other answer differently in any seed."""
        return int(np.any([self.differ(base, other) for base, other in pairs], axis=0).sum())


def check_lengths(gold: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
    """Raises `CompressError` where `outputs` are not of as many examples as `gold`, or there are none."""
    lengths = sorted({len(output) for output in outputs})
    if not len(gold) or lengths != [len(gold)]:
        raise CompressError(
            f"expected predictions for each of the {len(gold):,} examples (at least 1), found {lengths}"
        )


def check_names(names: tuple[str, ...], known: Sequence[str]) -> None:
    """Raises `CompressError` where `names` are not all among `known`, or there are none."""
    if not names or not set(names) <= set(known):
        raise CompressError(f"expected metrics of one kind, among {', '.join(known)}; found {list(names)}")
