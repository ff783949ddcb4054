"""Metrics computed by independent code, and model outputs to score, for the tests of scores and confidence intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compress.metrics import ClassHeadline, CorrelationHeadline, Headline


def one_hot(classes: np.ndarray, number: int = 2) -> np.ndarray:
    return np.eye(number, dtype=np.float32)[classes]


def flipped(gold: np.ndarray, share: float, rng: np.random.Generator, classes: int = 2) -> np.ndarray:
    """Logits of a model that is wrong on about `share` of the examples."""
    wrong = rng.random(len(gold)) < share
    return one_hot(np.where(wrong, (gold + 1) % classes, gold), classes)


def reference(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return the metric as scikit-learn or SciPy computes it, in points."""
    from scipy import stats
    from sklearn import metrics

    table: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
        "accuracy": lambda output, gold: metrics.accuracy_score(gold, output.argmax(1)),
        "f1": lambda output, gold: metrics.f1_score(gold, output.argmax(1)),
        "f1_macro": lambda output, gold: metrics.f1_score(gold, output.argmax(1), average="macro"),
        "matthews": lambda output, gold: metrics.matthews_corrcoef(gold, output.argmax(1)),
        "pearson": lambda output, gold: stats.pearsonr(output[:, 0], gold)[0],
        "spearman": lambda output, gold: stats.spearmanr(output[:, 0], gold)[0],
    }
    return lambda output, gold: float(100 * table[name](output, gold))


def f1_by_hand(predicted: np.ndarray, gold: np.ndarray, positive: int) -> float:
    both = np.sum((predicted == positive) & (gold == positive))
    return float(2 * both / (np.sum(predicted == positive) + np.sum(gold == positive)))


def ranks_by_hand(values: np.ndarray) -> np.ndarray:
    """Return mean ranks: the number of smaller values, plus half the number of equal ones."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2


BY_HAND: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "accuracy": lambda output, gold: np.mean(output.argmax(1) == gold),
    "f1": lambda output, gold: f1_by_hand(output.argmax(1), gold, 1),
    "f1_macro": lambda output, gold: np.mean([f1_by_hand(output.argmax(1), gold, c) for c in (0, 1)]),
    "matthews": lambda output, gold: np.corrcoef(output.argmax(1), gold)[0, 1],
    "pearson": lambda output, gold: np.corrcoef(output[:, 0], gold)[0, 1],
    "spearman": lambda output, gold: np.corrcoef(ranks_by_hand(output[:, 0]), ranks_by_hand(gold))[0, 1],
}


CLASSIFICATION = ("accuracy", "f1", "f1_macro", "matthews")
REGRESSION = ("pearson", "spearman")


def two_models(name: str, examples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if name in CLASSIFICATION:
        gold = rng.integers(2, size=examples)
        return flipped(gold, 0.1, rng), flipped(gold, 0.2, rng), gold
    gold = np.round(rng.uniform(0, 5, examples), 0)  # ties, as in STS-B
    base = gold[:, None] + rng.normal(size=(examples, 1))
    return base, base + rng.normal(size=(examples, 1)), gold


def headline_of(*metrics: str) -> Headline:
    """Return the headline score of a task with these metrics."""
    return CorrelationHeadline(metrics) if metrics[0] in REGRESSION else ClassHeadline(metrics)


def worse(examples: int, wrong: int) -> np.ndarray:
    """Return logits that are wrong on the first `wrong` examples; gold is 0, 1, 0, 1, …"""
    gold = np.tile([0, 1], examples // 2)
    return one_hot(np.where(np.arange(examples) < wrong, 1 - gold, gold))
