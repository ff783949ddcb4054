"""fp32 weights -> int8 with a scale for each output channel, or for each row of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..models.fake_quant.spec import CODES, LARGEST, LEAST_SCALE

Array = np.ndarray

LONG = 1024  # rows


def to_int8(weight: Array, axis: int | None, *, bits: int = 8) -> tuple[Array, Array]:
    """Quantize symmetrically: return (int8 of the same shape, float32 scales), with `weight` ≈ int8 × scale. Each index of
    `axis` has its own scale; None gives one scalar scale.

    A slice that is all zeros, or too small for a scale, gets the scale 1. `bits` of 7 leaves the outermost values unused.
    """
    others = None if axis is None else tuple(other for other in range(weight.ndim) if other != axis)
    largest = np.abs(weight).max(axis=others, keepdims=True).astype(np.float32)
    scale = largest / np.float32(2 ** (bits - 1) - 1)
    scale = np.where(scale >= np.finfo(np.float32).tiny, scale, np.float32(1))
    quantized = np.rint(weight / scale).astype(np.int8)
    return quantized, scale.reshape(()) if axis is None else scale.reshape(-1)


@dataclass(frozen=True)
class Rows:
    """A table [row, size] as int8: row i is `values`[i] × its scale, plus `centre` if there is one. `scales` [row] are the
    scales, or with a `unit` their codes: a scale is unit × code²."""

    values: Array
    scales: Array
    unit: Array | None = None
    centre: Array | None = None


def is_long(rows: int) -> bool:
    """Whether to code the scales of a table with this many rows: the bytes saved are worth the operators."""
    return rows >= LONG


def quantize_rows(table: Array) -> Rows:
    """Quantize a table [row, size] to int8, each row with its own scale.

    The scales of a long table are uint8 codes, rounded up, relative to the largest scale: a row a hundred times larger than
    the others makes theirs up to a tenth coarser. It has no centre, because its rows are words, which have little in common.
    A short table has its mean subtracted before rounding: positions share part of each row, and most of it if they include
    the row of the only segment.
    """
    if not is_long(len(table)):
        centre = table.mean(0)
        return Rows(*to_int8(table - centre, 0), centre=centre)
    # The scale of each row, and its code: rounded up, so that no value is clipped.
    scale = np.abs(table).max(1).astype(np.float32) / np.float32(LARGEST)
    unit = np.maximum(scale.max(), np.float32(LEAST_SCALE)) / np.float32(CODES**2)
    codes = np.clip(np.ceil(np.sqrt(scale / unit)), 1, CODES).astype(np.float32)
    # Quantize with the scales that the codes stand for.
    exact = codes * codes * unit
    quantized = np.clip(np.rint(table / exact[:, None]), -LARGEST, LARGEST).astype(np.int8)
    return Rows(quantized, codes.astype(np.uint8), unit=np.array(unit, np.float32))
