"""Decision thresholds for the labels of a multilabel task, chosen on a tuning split."""

from __future__ import annotations

import numpy as np

from ..metrics import Headline

FEWEST_POSITIVES = 5  # tuning examples of a label; with fewer, it uses the shared threshold
PRIOR_POSITIVES = 20  # weight of the shared threshold, in examples, against a label's own
_FOLDS = 5
_CANDIDATES = 100
_SAME = 1e-9  # points, or a share of 1


def label_thresholds(outputs: np.ndarray, gold: np.ndarray, headline: Headline) -> np.ndarray:
    """Return the best threshold of each label, float64 [label], or one for all, for outputs and gold [example, label].

    With few examples, a label's own threshold is mostly chance. So it is averaged with the shared one, weighted by the label's positive
    examples; and labels get their own only if that raises the score of the split, also when each fold is decided by thresholds of the
    others. `benchmarks/label_thresholds.py` measures the two constants and that choice.
    """
    shared = shared_threshold(outputs, gold, headline)
    one, own = np.full(gold.shape[1], shared), own_thresholds(outputs, gold, shared)
    least = headline(outputs - shared, gold) + _SAME
    better = headline(outputs - own, gold) > least and headline(_cross_decided(outputs, gold, shared), gold) > least
    return own if better else one


def shared_threshold(outputs: np.ndarray, gold: np.ndarray, headline: Headline) -> float:
    """Return the one threshold for all labels that maximizes the headline.

    Candidates lie midway between consecutive outputs, where a quarter to four times as many labels are given as in gold; 0 if none is
    better.
    """
    ordered, labels = np.sort(outputs, axis=None)[::-1], int(gold.sum())
    counts = np.unique(np.linspace(max(1, labels / 4), min(4 * labels, outputs.size - 1), _CANDIDATES).astype(int))
    middles = (ordered[counts - 1] + ordered[counts]) / 2 if labels else np.zeros(0)
    candidates = [0.0, *middles.tolist()]
    return max(candidates, key=lambda candidate: headline(outputs - candidate, gold))  # the first among equals


def own_thresholds(outputs: np.ndarray, gold: np.ndarray, shared: float, prior: int = PRIOR_POSITIVES) -> np.ndarray:
    """Return float64 [label]: the mean of the shared threshold, with weight `prior`, and that of the label's best F1, with its number of
    positive examples as weight; the shared one for labels with fewer than `FEWEST_POSITIVES`."""
    positives = gold.sum(axis=0, dtype=np.int64)
    weights = np.where(positives < FEWEST_POSITIVES, 0, positives / np.maximum(positives + prior, 1))
    best = [best_f1_threshold(outputs[:, label], gold[:, label], shared) for label in range(gold.shape[1])]
    return shared + weights * (np.array(best) - shared)


def best_f1_threshold(outputs: np.ndarray, gold: np.ndarray, near: float) -> float:
    """Return the threshold of the best F1 for one label, [example]; among equals the nearest to `near`. It lies midway between two outputs;
    `near` if all are equal, or no example has the label."""
    order = np.argsort(-outputs, kind="stable")
    ordered = outputs[order].astype(np.float64)
    cuts = np.flatnonzero(ordered[1:] < ordered[:-1])
    if not len(cuts) or not gold.any():
        return near
    right = np.cumsum(gold[order], dtype=np.int64)
    scores = 2 * right[cuts] / (cuts + 1 + right[-1])
    cuts = cuts[scores >= scores.max() - _SAME]
    middles = (ordered[cuts] + ordered[cuts + 1]) / 2
    return float(middles[np.abs(middles - near).argmin()])


def _cross_decided(outputs: np.ndarray, gold: np.ndarray, shared: float) -> np.ndarray:
    """Return the outputs minus each label's threshold from the other folds; the shared one is from all."""
    decided, fold = outputs.astype(np.float64), np.arange(len(outputs)) % _FOLDS
    for number in range(_FOLDS):
        held = fold == number
        decided[held] -= own_thresholds(outputs[~held], gold[~held], shared)
    return decided
