"""Errors of matmuls with int8 operands on a sample of tokens, and which of two settings has the larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..spec.quantization import Quantize
from .channel_splitting import source_channels, split_rows
from .ranges import Range
from .weights import to_int8

_AT_ONCE = 128  # tokens
_ENOUGH = 256  # fewest tokens after which a setting may be given up
_SURE = 6.0  # standard errors by which it must be worse: a chance of one in 10⁹ with normal errors
# Its rival's mean error on these tokens must be at least this share of that on all: else the worst tokens are yet to come.
_FAIR = 0.8
_TINY = float(np.finfo(np.float32).tiny)

Array = np.ndarray


def interleave_rows(states: Array) -> Array:
    """Reorder the rows, which come sorted by text length, so that any `_AT_ONCE` consecutive ones are a fair sample."""
    parts = -(-len(states) // _AT_ONCE)
    return np.concatenate([states[first::parts] for first in range(parts)])


@dataclass(frozen=True)
class Fp32Matmul:
    """A matmul on the sample, in fp32: its weight [in, out], its output [token, out], and `squares`, which each token's
    squared error is divided by: its own squared norm plus the median one, because a token with a huge state, which a norm
    reduces, has a huge error."""

    weight: Array
    output: Array
    squares: Array

    @classmethod
    def of(cls, states: Array, weight: Array) -> Fp32Matmul:
        output = states @ weight
        squares = (output**2).sum(1)
        return cls(weight, output, squares + np.median(squares) + _TINY)


@dataclass(frozen=True)
class MatmulSample:
    """The matmuls of one input on a sample of its tokens.

    `states` [token, channel]: the input, `extremes` [2, channel]: its minimum and maximum, `spec`: how weights are quantized.
    """

    states: Array
    extremes: Array
    matmuls: Sequence[Fp32Matmul]
    spec: Quantize

    @classmethod
    def of(cls, states: Array, weights: Sequence[Array], spec: Quantize) -> MatmulSample:
        states = interleave_rows(states)
        extremes = np.stack([states.min(0), states.max(0)])
        return cls(states, extremes, [Fp32Matmul.of(states, weight) for weight in weights], spec)

    def errors(self, factors: Array, repeats: Array | None = None) -> Array:
        """Return the squared errors of the matmuls with int8 operands, relative to the tokens' squares, float64 [token]."""
        return np.concatenate(list(self._error_parts(factors, repeats)))

    def smaller_errors(self, factors: Array, repeats: Array | None = None, *, to_beat: Array) -> Array | None:
        """As `errors`; None if their sum is not below that of `to_beat`, as soon as that is certain."""
        errors, done = np.zeros(len(self.states)), 0
        for part in self._error_parts(factors, repeats):
            errors[done : (done := done + len(part))] = part
            if _is_larger(errors[:done], to_beat):
                return None
        return errors

    def _error_parts(self, factors: Array, repeats: Array | None) -> Iterator[Array]:
        """Yield the errors of `_AT_ONCE` tokens at a time."""
        low, high = self.extremes / factors
        span = Range(float(low.min()), float(high.max()))
        weights = [_dequantized_weight(factors[:, None] * each.weight, repeats, self.spec) for each in self.matmuls]
        for first in range(0, len(self.states), _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            rounded = span.rounded(self.states[rows] / factors)
            errors = np.zeros(len(rounded))
            for matmul, weight in zip(self.matmuls, weights, strict=True):
                difference = rounded @ weight
                difference -= matmul.output[rows]
                errors += np.einsum("ij,ij->i", difference, difference) / matmul.squares[rows]
            yield errors


def _dequantized_weight(weight: Array, repeats: Array | None, spec: Quantize) -> Array:
    """Return the dequantized weight, float32 [in, out]. The copies of a channel have the same quantized input, so their rows
    are added up."""
    if repeats is not None:
        weight = split_rows(weight, repeats, **spec.weights)
    int8, scale = to_int8(weight, **spec.weights)
    rounded = int8 * scale
    if repeats is None:
        return rounded
    return np.add.reduceat(rounded[np.argsort(source_channels(repeats), kind="stable")], np.cumsum(repeats) - repeats)


def _is_larger(errors: Array, to_beat: Array) -> bool:
    """Whether the sum of `errors`, of the rows so far, will not be below that of `to_beat`, of all rows: it is not now; or after
    `_ENOUGH` rows, if these are a `_FAIR` sample, the mean excess is more than `_SURE` times its standard error."""
    if not errors.sum() < to_beat.sum():  # written so that NaN is larger
        return True
    count = len(errors)
    if count < _ENOUGH or count == len(to_beat):
        return False
    if to_beat[:count].mean() < _FAIR * to_beat.mean():
        return False
    excess = errors - to_beat[:count]
    return bool(excess.mean() > _SURE * excess.std() / count**0.5)
