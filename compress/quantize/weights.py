"""fp32 weights -> int8 with a scale for each output channel, or for each row of a table."""

from __future__ import annotations

import numpy as np

from ..models.uses import LEAST_HALF

Array = np.ndarray

_LONG = 1024  # rows


def to_int8(weight: Array, axis: int | None, *, bits: int = 8) -> tuple[Array, Array]:
    """Symmetric: (int8 of the same shape, float32 scales), `weight` ≈ int8 × scale. `axis` has a scale of its own for each index,
    and the scales its size; None gives one scale for all, of no axis.

    What is all zeros gets the scale 1. `bits` of 7 leaves the outermost levels unused.
    """
    others = None if axis is None else tuple(other for other in range(weight.ndim) if other != axis)
    largest = np.abs(weight).max(axis=others, keepdims=True).astype(np.float32)
    scale = np.where(largest > 0, largest / np.float32(2 ** (bits - 1) - 1), np.float32(1)).astype(np.float32)
    levels = np.rint(weight / scale).astype(np.int8)
    return levels, scale.reshape(()) if axis is None else scale.reshape(-1)


def is_long(rows: int) -> bool:
    """Whether a table of so many rows has float16 scales: the bytes that they save are worth an operator."""
    return rows >= _LONG


def row_levels(table: Array) -> tuple[Array, Array]:
    """A table [row, size] as int8, and its scales [row]: of a long table float16, whose rounding the levels make up for. No
    scale is below `LEAST_HALF`."""
    levels, scale = to_int8(table, 0)
    if not is_long(len(table)):
        return levels, scale
    half = np.maximum(scale, np.float32(LEAST_HALF)).astype(np.float16)
    exact = half.astype(np.float32)[:, None]
    return np.clip(np.rint(table / exact), -127, 127).astype(np.int8), half
