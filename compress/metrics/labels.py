"""Metrics of independent labels, on weighted examples. Imports numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names


@dataclass(frozen=True)
class LabelsHeadline(Headline):
    """Headline for logits [example, label]; a label is given if its output is above 0. `gold` [example, label] is 0 or 1."""

    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, list(LABEL_METRICS))

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return float(self._points(outputs, gold.astype(bool), np.ones((1, len(gold))))[0])

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        if "mean_average_precision" in self.metrics:
            return (base != other).any(axis=1)
        return ((base > 0) != (other > 0)).any(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return ((outputs > 0) == gold.astype(bool)).all(axis=1) if self.metrics == ("accuracy",) else None

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled examples. If models differ on too few examples to be told apart, two are added, each answered wrongly
        by one model."""
        columns = [np.asarray(outputs, dtype=np.float64) for pair in pairs for outputs in pair]
        gold = gold.astype(bool)
        if self.count_changed(pairs, gold) < FEWEST:
            columns, gold = _with_mistaken(columns, gold)
        parts = [
            np.stack([self._points(outputs, gold, weights) for outputs in columns])
            for weights in draws(len(gold), samples, rng)
        ]
        return np.concatenate(parts, axis=1)

    def _points(self, outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return points [sample], for `weights` [sample, example]."""
        return 100 * np.mean([LABEL_METRICS[name](outputs, gold, weights) for name in self.metrics], axis=0)


def _with_mistaken(columns: Sequence[np.ndarray], gold: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Return columns and gold with two more examples of the most frequent combination of labels: the first is answered wrongly by every
    base, the second by every other."""
    kinds, sizes = np.unique(gold[gold.any(axis=1)] if gold.any() else gold, axis=0, return_counts=True)
    usual = kinds[sizes.argmax()]
    added = []
    for index, outputs in enumerate(columns):
        size = np.abs(outputs).max() or 1.0
        right = np.where(usual, size, -size)
        added.append(np.concatenate([outputs, [-right, right] if index % 2 == 0 else [right, -right]]))
    return added, np.concatenate([gold, [usual, usual]])


def _counts(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return [sample, label]: how often a label is given correctly; how often it is given plus how often it is gold."""
    predictions = outputs > 0
    return weights @ (predictions & gold), weights @ (predictions.astype(float) + gold)


def _f1_micro(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    right, occurrences = (counts.sum(axis=1) for counts in _counts(outputs, gold, weights))
    return 2 * right / np.maximum(occurrences, 1)


def _f1_macro(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean over labels that are gold or given somewhere in the sample."""
    right, occurrences = _counts(outputs, gold, weights)
    seen = (occurrences > 0).sum(axis=1)
    return (2 * right / np.maximum(occurrences, 1)).sum(axis=1) / np.maximum(seen, 1)


def _accuracy(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the share of examples whose labels are all right."""
    return weights @ ((outputs > 0) == gold).all(axis=1) / weights.sum(axis=1)


def _mean_average_precision(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean over labels that are gold somewhere in the sample of Σ (recall_k − recall_{k−1}) · precision_k, over a label's
    distinct outputs in descending order; equal ones are given together."""
    summed, present = np.zeros(len(weights)), np.zeros(len(weights))
    for label in range(gold.shape[1]):
        order = np.argsort(-outputs[:, label], kind="stable")
        ordered = outputs[order, label]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        drawn = weights[:, order]
        positives = np.cumsum(drawn, axis=1)[:, ends]
        right = np.cumsum(drawn * gold[order, label], axis=1)[:, ends]
        gained = np.diff(right, axis=1, prepend=0)
        total = right[:, -1]
        summed += (gained * right / np.maximum(positives, 1)).sum(axis=1) / np.maximum(total, 1)
        present += total > 0
    return summed / np.maximum(present, 1)


LABEL_METRICS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "f1_micro": _f1_micro,
    "f1_macro": _f1_macro,
    "mean_average_precision": _mean_average_precision,
    "accuracy": _accuracy,
}
