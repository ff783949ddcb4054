"""Linear algebra for projecting a model onto fewer dimensions, on float64 arrays.

Rows are tokens. A map is a matrix [out, in] and a bias [out], as in a linear layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

STRENGTHS = (1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, float("inf"))  # of ridge regressions


def shared_basis(moment: Array, width: int) -> Array:
    """Return orthonormal columns [size, width] that span the leading directions of `moment` [size, size], in a form that suits LayerNorm.

    LayerNorm treats features one by one and subtracts their mean. So the mean direction is kept as the mean (ones map to ones), and of all
    bases of the subspace this is the one nearest to `width` of the original features. At full width it is the identity.
    """
    size = len(moment)
    ones = np.full((size, 1), size**-0.5)
    centred = moment - ones @ (ones.T @ moment)
    centred -= (centred @ ones + np.trace(moment) * ones) @ ones.T  # puts the mean direction last
    leading = np.linalg.eigh(centred)[1][:, ::-1][:, : width - 1]
    kept = _independent_rows(np.hstack([ones, leading]), width)
    aligned = leading[kept].T - leading[kept].T.mean(1, keepdims=True)
    left, _, right = np.linalg.svd(aligned, full_matrices=False)
    return ones @ np.full((1, width), width**-0.5) + leading @ left @ right


def _independent_rows(matrix: Array, count: int) -> np.ndarray:
    """Return sorted indices of `count` rows of `matrix` that are far from linearly dependent: greedily, each the longest after projecting
    out the previous ones."""
    left_over = matrix.copy()
    kept: list[int] = []
    for _ in range(count):
        lengths = (left_over**2).sum(1)
        lengths[kept] = -1
        kept.append(int(lengths.argmax()))
        row = left_over[kept[-1]] / np.sqrt(lengths[kept[-1]])
        left_over -= np.outer(left_over @ row, row)
    return np.sort(kept)


def refit(matrix: Array, bias: Array, inputs: Array, targets: Array) -> tuple[Array, Array]:
    """Return a map near (`matrix`, `bias`) that takes `inputs` [token, in] to `targets` [token, out].

    It adds a ridge regression of the given map's residual. The strength is the one that predicts the last quarter of the tokens best when
    fitted to the others: a map without residual is unchanged, and few tokens change little.
    """
    left_over = targets - inputs @ matrix.T - bias
    seen = max(1, len(inputs) * 3 // 4)
    first = _Regression(inputs[:seen], left_over[:seen])
    errors = [((first.predicted(inputs[seen:], strength) - left_over[seen:]) ** 2).sum() for strength in STRENGTHS]
    change, constant = _Regression(inputs, left_over).map(STRENGTHS[int(np.argmin(errors))])
    return matrix + change, bias + constant


class _Regression:
    """Least squares from `inputs` to `targets`, decomposed once for any ridge strength.

    The strength is in units of the inputs' mean variance; an infinite one leaves only the constant.
    """

    def __init__(self, inputs: Array, targets: Array) -> None:
        self.mean_in, self.mean_out = inputs.mean(0), targets.mean(0)
        deviations = inputs.std(0)
        floor = 1e-6 * (np.abs(self.mean_in) + deviations.mean())  # constant inputs carry no information
        self.scale = np.maximum(deviations, floor + np.finfo(np.float64).tiny)
        centred = (inputs - self.mean_in) / self.scale
        self.variances, self.directions = np.linalg.eigh(centred.T @ centred / len(centred))
        self.shared = self.directions.T @ (centred.T @ (targets - self.mean_out)) / len(centred)

    def _damped_coefficients(self, strength: float) -> Array:
        unit = max(self.variances.mean(), np.finfo(np.float64).tiny)
        return self.shared / (np.maximum(self.variances, 0) + strength * unit)[:, None]

    def predicted(self, inputs: Array, strength: float) -> Array:
        return (inputs - self.mean_in) / self.scale @ self.directions @ self._damped_coefficients(
            strength
        ) + self.mean_out

    def map(self, strength: float) -> tuple[Array, Array]:
        change = (self.directions @ self._damped_coefficients(strength)).T / self.scale
        return change, self.mean_out - change @ self.mean_in


def fitted_norm(inputs: Array, targets: Array, epsilon: float) -> tuple[Array, Array]:
    """Return gain and bias of the LayerNorm that takes `inputs` nearest to `targets`, both [token, size]: least squares per feature."""
    normal = inputs - inputs.mean(1, keepdims=True)
    normal /= np.sqrt((normal**2).mean(1, keepdims=True) + epsilon)
    centred = normal - normal.mean(0)
    variance = np.maximum((centred**2).mean(0), np.finfo(np.float64).tiny)
    gain = (centred * (targets - targets.mean(0))).mean(0) / variance
    return gain, targets.mean(0) - gain * normal.mean(0)


def score_maps(queries: Array, keys: Array, size: int) -> tuple[Array, Array]:
    """Return maps [size, head size] of one head's queries and keys, both [token, head size], that best preserve the scores over all pairs
    of tokens (queries · keys / √size): a truncated SVD of the scores."""
    full = queries.shape[1]
    if size == full:
        return np.eye(full), np.eye(full)
    (query_root, query_inverse), (key_root, key_inverse) = _roots(queries), _roots(keys)
    left, values, right = np.linalg.svd(query_root @ key_root)
    scale = np.sqrt(values[:size, None]) * (size / full) ** 0.25
    return scale * left.T[:size] @ query_inverse, scale * right[:size] @ key_inverse


def value_maps(contexts: Array, output: Array, size: int) -> tuple[Array, Array]:
    """Return maps [size, head size] and back [head size, size] of one head's values that best preserve `output` [out, head size] · its
    contexts [token, head size]."""
    full = contexts.shape[1]
    if size == full:
        return np.eye(full), np.eye(full)
    root, inverse = _roots(contexts - contexts.mean(0))
    right = np.linalg.svd(output @ root)[2][:size]
    return right @ inverse, root @ right.T


def strongest(activations: Array, output: Array, count: int) -> np.ndarray:
    """Return the `count` neurons, sorted, whose activations [token, neuron] move `output` [out, neuron] · activations most."""
    energy = activations.var(0) * (output**2).sum(0)
    return np.sort(np.argsort(-energy, kind="stable")[:count])


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """Return a matrix with `blocks` of equal shape along its diagonal."""
    return np.einsum("brc,bd->brdc", np.stack(blocks), np.eye(len(blocks))).reshape(
        sum(len(block) for block in blocks), -1
    )


def _roots(vectors: Array) -> tuple[Array, Array]:
    """Return the square root of the second moment of `vectors` [token, size], and its inverse."""
    values, directions = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    roots = np.sqrt(np.maximum(values, values[-1] * 1e-9 + np.finfo(np.float64).tiny))
    return (directions * roots) @ directions.T, (directions / roots) @ directions.T
