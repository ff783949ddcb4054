"""Several teachers as one: a calibrating temperature for each, and the mean of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# At most twenty times sharper or softer; beyond that, a fit to a few hundred examples is chance.
LOWEST, HIGHEST = 1 / 20, 20.0


def fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """Return the T from `LOWEST` to `HIGHEST` with the least negative log-likelihood of `labels` under softmax(logits / T) (Guo et al.
    2017, arXiv:1706.04599, §4.2); 1 if every example is classified correctly, since the likelihood then has no maximum and rises as T
    falls.

    `logits` [example, class], `labels` [example], class ids. Predicted classes do not depend on T.
    """
    from scipy.special import softmax

    logits = np.asarray(logits, dtype=np.float64)
    if not (logits.argmax(axis=1) != labels).any():
        return 1.0

    def slope(inverse: float) -> float:
        """Return the derivative of the likelihood, which is concave in 1/T: the mean of z_label − E[z]."""
        expected = (softmax(logits * inverse, axis=1) * logits).sum(axis=1)
        return float((logits[np.arange(len(labels)), labels] - expected).mean())

    return likeliest_temperature(slope)


def likeliest_temperature(slope: Callable[[float], float]) -> float:
    """Return the T from `LOWEST` to `HIGHEST` that maximizes a log-likelihood that is concave in 1/T. `slope`: its derivative at 1/T."""
    from scipy.optimize import brentq

    if slope(1 / LOWEST) >= 0:
        return LOWEST
    if slope(1 / HIGHEST) <= 0:
        return HIGHEST
    inverse: Any = brentq(slope, 1 / HIGHEST, 1 / LOWEST, xtol=1e-12)
    return 1 / inverse


def divide_by_temperature(outputs: np.ndarray, temperature: float | None) -> np.ndarray:
    """Return outputs / temperature in float64; unchanged if there is none."""
    return np.asarray(outputs, dtype=np.float64) / (1.0 if temperature is None else temperature)


def mean_of_probabilities(calibrated: Sequence[np.ndarray]) -> np.ndarray:
    """Return the log of the teachers' mean softmax(logits), float64 [example, class]: logits whose softmax is that mean.

    `calibrated`: each teacher's logits [example, class], divided by its temperature.
    """
    from scipy.special import log_softmax

    return mean_of_log_probabilities([
        log_softmax(np.asarray(logits, dtype=np.float64), axis=1) for logits in calibrated
    ])  # fmt: skip


def mean_of_log_probabilities(logs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the log of the teachers' mean exp(logs), elementwise, float64."""
    return np.logaddexp.reduce(np.asarray(logs, dtype=np.float64), axis=0) - np.log(len(logs))


def mean_of_decisions(calibrated: Sequence[np.ndarray]) -> np.ndarray:
    """Return the logit of the teachers' mean sigmoid(logit), float64 [example, label]; `calibrated` as above."""
    logits = np.asarray(calibrated, dtype=np.float64)
    yes, no = (np.logaddexp.reduce(-np.logaddexp(0, -sign * logits), axis=0) for sign in (1, -1))
    return yes - no


def mean_of_scores(scores: Sequence[np.ndarray]) -> np.ndarray:
    """Return the teachers' mean score, float64 [example, 1]."""
    return np.mean(np.asarray(scores, dtype=np.float64), axis=0)
