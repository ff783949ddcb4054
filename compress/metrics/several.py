"""The mean of a score over several sets of examples. Imports numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .headline import Headline, Pairs, check_lengths


@dataclass(frozen=True)
class MeanHeadline(Headline):
    """The mean over sets, equally weighted, of the score `of` each set. `sizes`: of the sets, whose examples are concatenated. Resamples
    draw each set's examples from that set."""

    of: Headline
    sizes: tuple[int, ...]

    @property
    def metrics(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.of.metrics

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return float(
            np.mean([self.of(*part) for part in zip(self._split_sets(outputs), self._split_sets(gold), strict=True)])
        )

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        parts = zip(self._split_sets(base), self._split_sets(other), strict=True)
        return np.concatenate([self.of.differ(*part) for part in parts])

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        """Return None: with several sets, the score is not a share of all examples."""
        return None

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        points = [
            self.of.resampled([(base[rows], other[rows]) for base, other in pairs], gold[rows], samples, rng)
            for rows in self._set_slices(gold)
        ]
        return np.mean(points, axis=0)

    def _split_sets(self, array: np.ndarray) -> list[np.ndarray]:
        return [array[rows] for rows in self._set_slices(array)]

    def _set_slices(self, array: np.ndarray) -> list[slice]:
        """Return each set's slice. Raises `CompressError` if `array` has another number of examples than all sets together."""
        ends = np.cumsum(self.sizes).tolist()
        check_lengths(np.empty(ends[-1]), [array])
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
