"""How faithful a quantized model is to its fp32 one on the same examples: flips, logit differences, calibration.

Imports only numpy. Logits are [example, output]; answers are the decisions, [example, ...].
"""

from __future__ import annotations

import numpy as np

BINS = 15


def differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether two answers to the same example differ anywhere, bool [example]."""
    return (one != other).reshape(len(one), -1).any(axis=1)


def flip_positions(fp32: np.ndarray, int8: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Return the positions of the examples whose answers differ, int64, the most confident first; ties in file order.

    `confidence` [example]: how sure the fp32 model is of its answers.
    """
    positions = np.flatnonzero(differ(fp32, int8))
    return positions[np.argsort(-confidence[positions], kind="stable")]


def most_confident(
    one: np.ndarray, other: np.ndarray, confidences: tuple[np.ndarray, np.ndarray], most: int
) -> np.ndarray:
    """Return the positions of up to `most` examples whose answers differ, int64, by decreasing confidence of the less sure
    model; ties in file order. `confidences`: of both, [example]."""
    positions = np.flatnonzero(differ(one, other))
    lower = np.minimum(*confidences)[positions]
    return positions[np.argsort(-lower, kind="stable")][:most]


def logit_difference(fp32: np.ndarray, int8: np.ndarray) -> tuple[float, float]:
    """(mean, largest) |fp32 − int8| over all logits of all examples."""
    difference = np.abs(np.asarray(fp32, dtype=np.float64) - np.asarray(int8, dtype=np.float64))
    return float(difference.mean()), float(difference.max())


def reliability(
    confidence: np.ndarray, correct: np.ndarray, *, bins: int = BINS
) -> list[tuple[int, int, float, float]]:
    """Return (number from 1, examples, mean confidence, share of right decisions) of each nonempty bin, the least confident
    first.

    `confidence` [example]: the probability of the decision; bin m holds those in ((m − 1) / bins, m / bins]. `correct`, bool
    [example]: whether it is the gold label's.
    """
    bin_of = np.digitize(confidence, np.arange(1, bins) / bins, right=True)
    counts, confidences, right = (
        np.bincount(bin_of, weights=each, minlength=bins) for each in (None, confidence, correct)
    )
    return [
        (
            int(index) + 1,
            int(counts[index]),
            float(confidences[index] / counts[index]),
            float(right[index] / counts[index]),
        )
        for index in np.flatnonzero(counts)
    ]


def calibration_error(confidence: np.ndarray, correct: np.ndarray, *, bins: int = BINS) -> float:
    """Expected calibration error in points: |accuracy − mean confidence| within bins of equal width, weighted by their
    examples (Guo et al. 2017, arXiv:1706.04599, §3, eq. 3). Arguments are those of `reliability`."""
    gaps = (count * abs(right - sure) for _, count, sure, right in reliability(confidence, correct, bins=bins))
    return 100 * sum(gaps) / len(confidence)
