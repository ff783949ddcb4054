"""Several teachers as one: the temperature that calibrates each, and the mean of what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# No more than twenty times sharper or softer: what a few hundred examples ask for beyond that is chance.
LOWEST, HIGHEST = 1 / 20, 20.0
_HALVINGS = 60  # of the range of log T, which is then exact in float64


def fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """The T of least negative log-likelihood of `labels` under softmax(logits / T), from `LOWEST` to `HIGHEST`
    (Guo et al. 2017, arXiv:1706.04599, §4.2); 1 where every example is decided rightly, for then no T is the best: the
    smaller, the likelier.

    `logits` [example, class], `labels` [example], class ids. Decisions do not depend on T.
    """
    logits = np.asarray(logits, dtype=np.float64)
    if not (logits.argmax(axis=1) != labels).any():
        return 1.0
    for end, beyond in ((HIGHEST, True), (LOWEST, False)):
        if _is_too_low(logits, labels, end) is beyond:
            return end
    low, high = np.log(LOWEST), np.log(HIGHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_too_low(logits, labels, np.exp(middle)) else (low, middle)
    return float(np.exp((low + high) / 2))


def _is_too_low(logits: np.ndarray, labels: np.ndarray, temperature: float) -> bool:
    """Whether the likelihood grows with T. In 1/T it is concave, and its derivative the mean of z_label − E[z]."""
    probabilities = np.exp(log_softmax(logits / temperature))
    expected = (probabilities * logits).sum(axis=1)
    return bool((logits[np.arange(len(labels)), labels] - expected).mean() < 0)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Of each row, in float64."""
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def divided(outputs: np.ndarray, temperature: float | None) -> np.ndarray:
    """float64, as they are where there is no temperature."""
    return np.asarray(outputs, dtype=np.float64) / (1.0 if temperature is None else temperature)


def mean_of_probabilities(calibrated: Sequence[np.ndarray]) -> np.ndarray:
    """log of the mean of softmax(logits) of each teacher, float64 [example, class]: logits whose softmax is that mean.

    `calibrated`: of each teacher its logits [example, class], divided by its temperature.
    """
    logs = np.stack([log_softmax(logits) for logits in calibrated])
    return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))


def mean_of_scores(scores: Sequence[np.ndarray]) -> np.ndarray:
    """Of each example, float64 [example, 1]."""
    return np.mean(np.asarray(scores, dtype=np.float64), axis=0)
