"""How faithful a quantized model is to its fp32 one on the same examples: flips, logit differences, calibration.

Imports numpy alone. Logits are [example, class], or [example, 1] for regression.
"""

from __future__ import annotations

import numpy as np

BINS = 15


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax in float64, [example, class]."""
    logits = np.asarray(logits, dtype=np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def flipped(fp32: np.ndarray, int8: np.ndarray) -> np.ndarray:
    """Positions of the examples that the two decide differently, int64, those of which fp32 is most sure first; ties in
    file order."""
    found = np.flatnonzero(fp32.argmax(axis=1) != int8.argmax(axis=1))
    confidence = probabilities(fp32[found]).max(axis=1) if len(found) else np.zeros(0)
    return found[np.argsort(-confidence, kind="stable")]


def logit_difference(fp32: np.ndarray, int8: np.ndarray) -> tuple[float, float]:
    """(mean, largest) |fp32 − int8| over all logits of all examples."""
    difference = np.abs(np.asarray(fp32, dtype=np.float64) - np.asarray(int8, dtype=np.float64))
    return float(difference.mean()), float(difference.max())


def calibration_error(logits: np.ndarray, gold: np.ndarray, *, bins: int = BINS) -> float:
    """Expected calibration error in points: |accuracy − mean confidence| within bins of equal width, weighted by their
    examples (Guo et al. 2017, arXiv:1706.04599, §3, eq. 3). `gold`: class ids [example].

    Confidence is the probability of the decision; bin m holds those in ((m − 1) / bins, m / bins].
    """
    chances = probabilities(logits)
    confidence, correct = chances.max(axis=1), chances.argmax(axis=1) == gold
    place = np.digitize(confidence, np.arange(1, bins) / bins, right=True)
    gaps = np.bincount(place, weights=correct - confidence, minlength=bins)
    return 100 * float(np.abs(gaps).sum()) / len(confidence)
