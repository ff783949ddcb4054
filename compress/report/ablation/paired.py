"""Two rows on one task, seed by seed, and the mean difference over several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...results import Delta
from ...statistics import FEWEST, LEVEL, Headline, paired_bootstrap_seeds

_SAMPLES = 2000
_DECIMALS = 9  # rounding error of equal scores must not look like a difference


@dataclass(frozen=True)
class Paired:
    """Logits [example, class] of (full, other) for every seed, on the same examples."""

    metric: Headline
    pairs: tuple[tuple[np.ndarray, np.ndarray], ...]
    gold: np.ndarray

    def delta(self) -> Delta:
        """Other minus full, the mean over seeds."""
        points, low, high = paired_bootstrap_seeds(self.metric, self.pairs, self.gold, samples=_SAMPLES)
        return Delta(points=points, low=low, high=high, mcnemar_p=None)

    def resampled(self, rng: np.random.Generator) -> np.ndarray:
        """The mean difference over seeds on resampled examples and seeds, points [sample].

        Of S seeds S - 1 are drawn, as `paired_bootstrap_seeds` does and for its reason.
        """
        outputs = [output for pair in self.pairs for output in pair]
        points = self.metric.resample(outputs, self.gold, _SAMPLES, rng)
        differences, seeds = points[1::2] - points[::2], len(self.pairs)
        if seeds > 1:
            drawn = rng.integers(seeds, size=(seeds - 1, _SAMPLES))
            differences = np.take_along_axis(differences, drawn, axis=0)
        return differences.mean(axis=0)


def over_tasks(tasks: Sequence[Paired], deltas: Sequence[Delta]) -> Delta:
    """The mean of the tasks' differences; tasks share no examples, so each is resampled by itself."""
    if len(tasks) == 1:
        return deltas[0]
    rng = np.random.default_rng(0)
    means = np.mean([task.resampled(rng) for task in tasks], axis=0)
    low, high = (round(float(q), _DECIMALS) for q in np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    if min(len(task.gold) for task in tasks) < FEWEST:
        low, high = min(low, 0.0), max(high, 0.0)
    points = float(np.mean([delta.points for delta in deltas]))
    return Delta(points=points, low=low, high=high, mcnemar_p=None)
