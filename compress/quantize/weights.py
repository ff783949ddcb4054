"""fp32 weights -> int8 with a scale for each output channel, or for each row of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..models.quant_spec import CODES, LARGEST, LEAST_SCALE

Array = np.ndarray

LONG = 1024  # rows


def to_int8(weight: Array, axis: int | None, *, bits: int = 8) -> tuple[Array, Array]:
    """Symmetric: (int8 of the same shape, float32 scales), `weight` ≈ int8 × scale. `axis` has a scale of its own for each index,
    and the scales its size; None gives one scale for all, of no axis.

    What is all zeros, or too small for a scale, gets the scale 1. `bits` of 7 leaves the outermost levels unused.
    """
    others = None if axis is None else tuple(other for other in range(weight.ndim) if other != axis)
    largest = np.abs(weight).max(axis=others, keepdims=True).astype(np.float32)
    scale = largest / np.float32(2 ** (bits - 1) - 1)
    scale = np.where(scale >= np.finfo(np.float32).tiny, scale, np.float32(1))
    levels = np.rint(weight / scale).astype(np.int8)
    return levels, scale.reshape(()) if axis is None else scale.reshape(-1)


@dataclass(frozen=True)
class Rows:
    """A table [row, size] as int8: row i is `levels`[i] × its scale + `centre`, where there is one. `scales` [row] are the scales,
    or with a `unit` the codes of them: unit × code²."""

    levels: Array
    scales: Array
    unit: Array | None = None
    centre: Array | None = None


def is_long(rows: int) -> bool:
    """Whether a table of so many rows has codes for scales: the bytes that they save are worth the operators."""
    return rows >= LONG


def row_levels(table: Array) -> Rows:
    """A table [row, size] as int8, each row with a scale of its own.

    Of a long table the scales are coded in uint8, rounded up, from the largest of all: a row that is a hundred times larger than
    the others makes theirs up to a tenth coarser. There is no centre: its rows are words, which have little in common. Of a short
    one the mean is taken off before the rows are rounded: positions have some of each in common, and where the one segment's
    row is in them, most.
    """
    if not is_long(len(table)):
        centre = table.mean(0)
        return Rows(*to_int8(table - centre, 0), centre=centre)
    scale = np.abs(table).max(1).astype(np.float32) / np.float32(LARGEST)
    unit = np.maximum(scale.max(), np.float32(LEAST_SCALE)) / np.float32(CODES**2)
    codes = np.clip(np.ceil(np.sqrt(scale / unit)), 1, CODES).astype(np.float32)
    exact = codes * codes * unit
    levels = np.clip(np.rint(table / exact[:, None]), -LARGEST, LARGEST).astype(np.int8)
    return Rows(levels, codes.astype(np.uint8), unit=np.array(unit, np.float32))
