"""The share of questions whose right ending has the highest score. Imports numpy alone.

Outputs are [question, ending]: scores of a question's endings, padded with lower values if it has fewer than others. `gold` is [question],
the index of the right ending from 0, or [question, n] with that in each column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names


@dataclass(frozen=True)
class ChoiceHeadline(Headline):
    """`accuracy`: if k endings of a question share the highest score, the right one among them counts 1 / k, the expected value of a random
    choice. Resamples draw questions."""

    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, ["accuracy"])

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return 100 * float(shares(outputs, gold).mean())

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (_highest(base) != _highest(other)).any(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        share = shares(outputs, gold)
        return share == 1 if bool(np.isin(share, (0, 1)).all()) else None

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled questions. If models differ on too few questions to be told apart, two are added, each answered
        wrongly by one model."""
        values = np.stack([shares(outputs, gold) for pair in pairs for outputs in pair])
        if self.count_changed(pairs, gold) < FEWEST:
            mistaken = [[0, 1] if index % 2 == 0 else [1, 0] for index in range(len(values))]
            values = np.concatenate([values, np.array(mistaken, float)], axis=1)
        questions = values.shape[1]
        parts = [100 * values @ weights.T / questions for weights in draws(questions, samples, rng)]
        return np.concatenate(parts, axis=1)


def shares(outputs: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return float64 [question]: 1 if only the right ending has the highest score, 1 / k if it shares that with k - 1 others, else 0."""
    highest, right = _highest(outputs), (gold if gold.ndim == 1 else gold[:, 0]).astype(np.int64)
    return highest[np.arange(len(right)), right] / highest.sum(axis=1)


def _highest(outputs: np.ndarray) -> np.ndarray:
    """Return whether an ending has the highest score, bool [question, ending]."""
    return outputs == outputs.max(axis=1, keepdims=True)
