"""Random choices that are the same on every Python version and platform."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Choices seeded by a text. Only `random.random()` is used, whose sequence Python guarantees."""

    def __init__(self, seed: str) -> None:
        self._next = random.Random(seed).random

    def below(self, limit: int) -> int:
        return int(self._next() * limit)

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def two(self, choices: Sequence[T]) -> tuple[T, T]:
        """Return two items at different positions."""
        first, second = self.below(len(choices)), self.below(len(choices) - 1)
        return choices[first], choices[second + (second >= first)]

    def chance(self, probability: float) -> bool:
        return self._next() < probability
