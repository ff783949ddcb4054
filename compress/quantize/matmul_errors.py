"""How far matmuls are off on a sample of tokens when both of their operands are int8, and which of two ways is further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..spec.quantization import Quantize
from .channel_splitting import repeated, split_rows
from .ranges import Range
from .weights import to_int8

_AT_ONCE = 128  # tokens
_ENOUGH = 256  # tokens may show that one of two ways is not the better one,
_SURE = 6.0  # where they show it by so many standard errors: of normal ones by luck once in 10⁹ times
_FAIR = 0.8  # of the other way's mean error on all tokens: with less on those so far, the few that err most are still to come
_TINY = float(np.finfo(np.float32).tiny)

Array = np.ndarray


def mixed(states: Array) -> Array:
    """The rows in an order of which any `_AT_ONCE` in a row are a fair sample: they come sorted by the length of their texts."""
    parts = -(-len(states) // _AT_ONCE)
    return np.concatenate([states[first::parts] for first in range(parts)])


@dataclass(frozen=True)
class Exact:
    """A matmul on the sample, in fp32: its weight [in, out], what it gives [token, out], and against which square the error of
    each token counts: its own and the median one's, as a token with a huge state, which a norm brings down, errs hugely."""

    weight: Array
    output: Array
    squares: Array

    @classmethod
    def of(cls, states: Array, weight: Array) -> Exact:
        output = states @ weight
        squares = (output**2).sum(1)
        return cls(weight, output, squares + np.median(squares) + _TINY)


def token_errors(
    states: Array,
    reach: Array,
    matmuls: Sequence[Exact],
    factors: Array,
    repeats: Array | None,
    spec: Quantize,
    *,
    least: Array | None = None,
) -> Array | None:
    """Squared error of the matmuls, both operands int8, in parts of the tokens' squares, float64 [token]; None where their sum is
    not below that of `least`, which is seen as soon as it is sure. `reach` [2, channel]: the least and the largest of `states`."""
    low, high = reach / factors
    span = Range(float(low.min()), float(high.max()))
    weights = [_rounded(factors[:, None] * exact.weight, repeats, spec) for exact in matmuls]
    errors = np.zeros(len(states))
    for first in range(0, len(states), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        levels = span.rounded(states[rows] / factors)
        for exact, weight in zip(matmuls, weights, strict=True):
            difference = levels @ weight
            difference -= exact.output[rows]
            errors[rows] += np.einsum("ij,ij->i", difference, difference) / exact.squares[rows]
        if least is not None and _is_larger(errors[: rows.stop], least):
            return None
    return errors


def _rounded(weight: Array, repeats: Array | None, spec: Quantize) -> Array:
    """What its int8 form stands for, float32 [in, out]; all repeats of a channel have its quantized value: their rows count as one."""
    if repeats is not None:
        weight = split_rows(weight, repeats, **spec.weights)
    int8, scale = to_int8(weight, **spec.weights)
    rounded = int8 * scale
    if repeats is None:
        return rounded
    return np.add.reduceat(rounded[np.argsort(repeated(repeats), kind="stable")], np.cumsum(repeats) - repeats)


def _is_larger(errors: Array, least: Array) -> bool:
    """Whether the sum of `errors`, of which there may be more, is not below that of `least`: it is already, or the mean excess on the
    rows so far, `_ENOUGH` and a `_FAIR` sample of all, is `_SURE` times its standard error."""
    if not errors.sum() < least.sum():  # written so that NaN is larger
        return True
    count = len(errors)
    if count < _ENOUGH or count == len(least):
        return False
    if least[:count].mean() < _FAIR * least.mean():
        return False
    excess = errors - least[:count]
    return bool(excess.mean() > _SURE * excess.std() / count**0.5)
