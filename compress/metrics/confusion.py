"""Metrics of single-label classification, from counts of gold and predicted classes. Imports numpy alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .headline import CHUNK, Headline, Pairs, check_lengths, check_names


@dataclass(frozen=True)
class ClassHeadline(Headline):
    """Headline for classification; the class with the largest output is predicted. `positive`: class id that `f1` counts as positive; -1 is
    the last."""

    metrics: tuple[str, ...]
    positive: int = -1

    def __post_init__(self) -> None:
        check_names(self.metrics, list(CONFUSION_METRICS))

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        table = np.column_stack([np.asarray(gold, dtype=np.int64), outputs.argmax(axis=1)])
        return float(self.of_counts(table, np.ones((1, len(gold))), outputs.shape[1])[0, 0])

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        return base.argmax(axis=1) != other.argmax(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return outputs.argmax(axis=1) == gold if self.metrics == ("accuracy",) else None

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled examples. Examples with the same gold class and predictions are interchangeable: drawing how often
        each such pattern occurs is the bootstrap over examples, with a handful of numbers per resample."""
        gold, classes = gold.astype(np.int64), pairs[0][0].shape[1]
        table = np.column_stack([gold, *(outputs.argmax(axis=1) for pair in pairs for outputs in pair)])
        patterns, sizes = np.unique(table, axis=0, return_counts=True)
        imagined, weights = _only_one_right(gold, classes, len(pairs))
        shares = np.concatenate([sizes, weights]) / (len(gold) + weights.sum())
        counts = rng.multinomial(len(gold), shares, size=samples)
        return self.of_counts(np.concatenate([patterns, imagined]), counts, classes)

    def of_counts(self, patterns: np.ndarray, counts: np.ndarray, classes: int) -> np.ndarray:
        """Return points [output, sample]. `patterns`: gold and predicted classes [pattern, 1 + output]; `counts` [sample, pattern]."""
        positive = self.positive % classes
        step = max(1, CHUNK // classes**2)
        points = np.zeros((patterns.shape[1] - 1, len(counts)))
        for output in range(len(points)):
            cells = patterns[:, 0] * classes + patterns[:, 1 + output]
            for start in range(0, len(counts), step):
                confusion = _confusion(counts[start : start + step], cells, classes)
                scores = [CONFUSION_METRICS[name](confusion, positive) for name in self.metrics]
                points[output, start : start + step] = 100 * np.mean(scores, axis=0)
        return points


def _only_one_right(gold: np.ndarray, classes: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return patterns [pattern, 1 + output] of an example that only the base gets right, and of one that only the other does, in every
    seed; and weights [pattern], which sum to two over all seeds, distributed like the gold classes. The wrong answer is the most frequent
    other class."""
    sizes = np.bincount(gold, minlength=classes)
    patterns, weights = [], []
    for right in np.flatnonzero(sizes):
        wrong = np.argmax(np.where(np.arange(classes) == right, -1, sizes))
        patterns += [[right, *[right, wrong] * seeds], [right, *[wrong, right] * seeds]]
        weights += [sizes[right] / len(gold) / seeds] * 2
    return np.array(patterns), np.array(weights)


def _confusion(counts: np.ndarray, cells: np.ndarray, classes: int) -> np.ndarray:
    """Return counts [sample, gold class, predicted class] from `counts` [sample, pattern] and each pattern's cell."""
    if len(cells) * classes**2 <= 10_000:  # few classes: one small matrix product
        flat = counts.astype(np.float64) @ np.eye(classes**2)[cells]
    else:
        flat = np.stack([np.bincount(cells, weights=row, minlength=classes**2) for row in counts])
    return flat.reshape(-1, classes, classes)


def _accuracy(confusion: np.ndarray, positive: int) -> np.ndarray:
    return np.trace(confusion, axis1=1, axis2=2) / confusion.sum(axis=(1, 2))


def _f1_per_class(confusion: np.ndarray) -> np.ndarray:
    """Return F1 [sample, class]; 0 if a class is neither present nor predicted."""
    occurrences = confusion.sum(axis=1) + confusion.sum(axis=2)
    return 2 * np.diagonal(confusion, axis1=1, axis2=2) / np.maximum(occurrences, 1)


def _f1(confusion: np.ndarray, positive: int) -> np.ndarray:
    return _f1_per_class(confusion)[:, positive]


def _f1_macro(confusion: np.ndarray, positive: int) -> np.ndarray:
    seen = (confusion.sum(axis=1) + confusion.sum(axis=2)) > 0
    return (_f1_per_class(confusion) * seen).sum(axis=1) / seen.sum(axis=1)


def _matthews(confusion: np.ndarray, positive: int) -> np.ndarray:
    """Return Gorodkin's R_K (2004) for any number of classes; 0 if either side is constant."""
    total, gold, predicted = confusion.sum(axis=(1, 2)), confusion.sum(axis=2), confusion.sum(axis=1)
    spread = (total**2 - (gold**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1))
    agreement = np.trace(confusion, axis1=1, axis2=2) * total - (gold * predicted).sum(axis=1)
    return np.where(spread > 0, agreement / np.sqrt(np.where(spread > 0, spread, 1)), 0.0)


CONFUSION_METRICS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "f1_macro": _f1_macro,
    "matthews": _matthews,
}
