"""What x86 CPUs without VNNI make of an int8 matmul: pairs of products are summed in 16 bits, and clipped there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
LOWEST, HIGHEST = -(2**15), 2**15 - 1


@dataclass(frozen=True)
class Clipped:
    """Of one matmul uint8 [rows, inner] × int8 [inner, columns]: `pairs` sums of two products, `saturated` of them out
    of 16 bits. `over` is int32 [rows, columns]: by how much these exceed what 16 bits hold, summed."""

    pairs: int
    saturated: int
    over: Array


def clipped(levels: Array, weight: Array) -> Clipped:
    """What AVX2's vpmaddubsw loses: products 2i and 2i + 1 of a row with a column are added in int16 with saturation, and
    such sums in 32 bits. Zero points are no part of it: ONNX Runtime takes them off afterwards.

    Unsigned weights lose nothing, for ONNX Runtime has another kernel for them. Only pairs that the largest levels of
    their two activations could clip are looked at, which are few: 7-bit weights have none.
    """
    pairs = levels.shape[0] * -(-levels.shape[1] // 2) * weight.shape[1]
    over = np.zeros((levels.shape[0], weight.shape[1]), np.int32)
    if weight.dtype != np.int8 or not levels.size:
        return Clipped(pairs, 0, over)
    left, right = (_even(array, axis).astype(np.int32) for array, axis in ((levels, 1), (weight, 0)))
    first, second = right[0::2], right[1::2]
    possible = _exceeding(left.max(axis=0)[:, None], first, second)
    saturated = 0
    for column in np.flatnonzero(possible.any(axis=0)):
        which = np.flatnonzero(possible[:, column])
        sums = left[:, 2 * which] * first[which, column] + left[:, 2 * which + 1] * second[which, column]
        excess = sums - np.clip(sums, LOWEST, HIGHEST)
        saturated += int(np.count_nonzero(excess))
        over[:, column] = excess.sum(axis=1)
    return Clipped(pairs, saturated, over)


def _exceeding(largest: Array, first: Array, second: Array) -> Array:
    """bool [pairs, columns]: whether levels up to `largest` [2 × pairs, 1], none below 0, can leave 16 bits."""
    high = largest[0::2] * np.maximum(first, 0) + largest[1::2] * np.maximum(second, 0)
    low = largest[0::2] * np.minimum(first, 0) + largest[1::2] * np.minimum(second, 0)
    return (high > HIGHEST) | (low < LOWEST)


def int8_matmul(levels: Array, weight: Array, zero: int, *, saturating: bool) -> Array:
    """int32 [rows, columns] of (`levels` - `zero`) × `weight`, as a CPU without VNNI computes it or exactly."""
    # float64 holds every sum of fewer than 2^37 products exactly, and NumPy multiplies no integers fast.
    exact = (levels.astype(np.float64) - zero) @ weight.astype(np.float64)
    exact = exact.astype(np.int32)
    return exact - clipped(levels, weight).over if saturating else exact


def _even(array: Array, axis: int) -> Array:
    """With a zero behind an odd number of entries: a last one alone is paired with nothing."""
    width = [(0, array.shape[axis] % 2 if other == axis else 0) for other in range(2)]
    return np.pad(array, width)
