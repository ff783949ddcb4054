"""Metrics in points (0-100; correlations × 100), as scikit-learn and SciPy define them, with numpy alone.

The bootstrap calls these thousands of times, and a cached run must not pay for importing scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compress.errors import CheckFailed, CompressError
from compress.spec.task import TaskSpec


def score(spec: TaskSpec, labels: tuple[str, ...], logits: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """Metric -> points, for logits [example, class] (regression: [example, 1] or [example]).

    Raises `CheckFailed` when logits are not finite, `CompressError` when shapes do not fit the task.
    """
    outputs = np.asarray(logits, dtype=np.float64)
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs
    expected = (len(gold), len(labels) or 1)
    if outputs.shape != expected or not len(gold):
        raise CompressError(f"task {spec.name}: expected logits of shape {expected}, found {outputs.shape}")
    broken = int((~np.isfinite(outputs)).any(axis=1).sum())
    if broken:
        raise CheckFailed(f"task {spec.name}: {broken:,} of {len(gold):,} examples have logits that are not finite")
    if spec.kind == "regression":
        return {
            name: 100 * CORRELATIONS[name](outputs[:, 0], np.asarray(gold, dtype=np.float64)) for name in spec.metrics
        }
    confusion = confusion_matrix(outputs.argmax(axis=1), gold, len(labels))
    positive = labels.index(spec.positive) if spec.positive is not None else len(labels) - 1
    return {name: 100 * CLASS_METRICS[name](confusion, positive) for name in spec.metrics}


def headline(scores: dict[str, float]) -> float:
    """The one number of a split: the mean of its metrics."""
    return sum(scores.values()) / len(scores)


def confusion_matrix(predicted: np.ndarray, gold: np.ndarray, classes: int) -> np.ndarray:
    """Counts [gold class, predicted class]."""
    pairs = np.asarray(gold, dtype=np.int64) * classes + predicted
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def accuracy(confusion: np.ndarray, positive: int) -> float:
    return float(np.trace(confusion) / confusion.sum())


def f1(confusion: np.ndarray, positive: int) -> float:
    """F1 of the positive class; 0 when it is neither present nor predicted."""
    return float(_f1_per_class(confusion)[positive])


def f1_macro(confusion: np.ndarray, positive: int) -> float:
    """Unweighted mean of F1 over the classes that are present or predicted."""
    seen = (confusion.sum(axis=0) + confusion.sum(axis=1)) > 0
    return float(_f1_per_class(confusion)[seen].mean())


def _f1_per_class(confusion: np.ndarray) -> np.ndarray:
    occurrences = confusion.sum(axis=0) + confusion.sum(axis=1)
    return 2 * np.diagonal(confusion) / np.maximum(occurrences, 1)


def matthews(confusion: np.ndarray, positive: int) -> float:
    """Matthews correlation, for any number of classes (Gorodkin 2004); 0 when either side is constant."""
    counts = confusion.astype(np.float64)
    total, gold, predicted = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    spread = (total**2 - gold @ gold) * (total**2 - predicted @ predicted)
    return float((np.trace(counts) * total - gold @ predicted) / np.sqrt(spread)) if spread else 0.0


def pearson(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Pearson's r; 0 when either side is constant."""
    if not np.ptp(predicted) or not np.ptp(gold):
        return 0.0
    x, y = predicted - predicted.mean(), gold - gold.mean()
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return float(np.clip(x @ y, -1, 1))


def spearman(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Spearman's ρ: Pearson's r of the ranks, ties sharing their mean rank; 0 when either side is constant."""
    return pearson(_ranks(predicted), _ranks(gold))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


CLASS_METRICS: dict[str, Callable[[np.ndarray, int], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "f1_macro": f1_macro,
    "matthews": matthews,
}
CORRELATIONS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {"pearson": pearson, "spearman": spearman}
