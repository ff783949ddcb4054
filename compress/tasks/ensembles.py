"""Several teachers as one: the temperature that calibrates each, and the mean of what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# No more than twenty times sharper or softer: what a few hundred examples ask for beyond that is chance.
LOWEST, HIGHEST = 1 / 20, 20.0


def fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """The T of least negative log-likelihood of `labels` under softmax(logits / T), from `LOWEST` to `HIGHEST`
    (Guo et al. 2017, arXiv:1706.04599, §4.2); 1 where every example is decided rightly, for then no T is the best: the
    smaller, the likelier.

    `logits` [example, class], `labels` [example], class ids. Decisions do not depend on T.
    """
    from scipy.special import softmax

    logits = np.asarray(logits, dtype=np.float64)
    if not (logits.argmax(axis=1) != labels).any():
        return 1.0

    def slope(inverse: float) -> float:
        """Of the likelihood, which is concave in 1/T: the mean of z_label − E[z]."""
        expected = (softmax(logits * inverse, axis=1) * logits).sum(axis=1)
        return float((logits[np.arange(len(labels)), labels] - expected).mean())

    return likeliest_temperature(slope)


def likeliest_temperature(slope: Callable[[float], float]) -> float:
    """The T from `LOWEST` to `HIGHEST` at which a log-likelihood that is concave in 1/T is largest. `slope`: its derivative at 1/T."""
    from scipy.optimize import brentq

    if slope(1 / LOWEST) >= 0:
        return LOWEST
    if slope(1 / HIGHEST) <= 0:
        return HIGHEST
    inverse: Any = brentq(slope, 1 / HIGHEST, 1 / LOWEST, xtol=1e-12)
    return 1 / inverse


def divided(outputs: np.ndarray, temperature: float | None) -> np.ndarray:
    """float64, as they are where there is no temperature."""
    return np.asarray(outputs, dtype=np.float64) / (1.0 if temperature is None else temperature)


def mean_of_probabilities(calibrated: Sequence[np.ndarray]) -> np.ndarray:
    """log of the mean of softmax(logits) of each teacher, float64 [example, class]: logits whose softmax is that mean.

    `calibrated`: of each teacher its logits [example, class], divided by its temperature.
    """
    from scipy.special import log_softmax

    return mean_of_log_probabilities([
        log_softmax(np.asarray(logits, dtype=np.float64), axis=1) for logits in calibrated
    ])  # fmt: skip


def mean_of_log_probabilities(logs: Sequence[np.ndarray]) -> np.ndarray:
    """log of the mean of exp(logs) of each teacher, float64 of their shape: element by element."""
    return np.logaddexp.reduce(np.asarray(logs, dtype=np.float64), axis=0) - np.log(len(logs))


def mean_of_decisions(calibrated: Sequence[np.ndarray]) -> np.ndarray:
    """The logit of the mean of sigmoid(logit) of each teacher, float64 [example, label]; `calibrated` as above."""
    logits = np.asarray(calibrated, dtype=np.float64)
    yes, no = (np.logaddexp.reduce(-np.logaddexp(0, -sign * logits), axis=0) for sign in (1, -1))
    return yes - no


def mean_of_scores(scores: Sequence[np.ndarray]) -> np.ndarray:
    """Of each example, float64 [example, 1]."""
    return np.mean(np.asarray(scores, dtype=np.float64), axis=0)
