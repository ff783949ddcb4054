"""fp32 weights -> int8 with a scale for each output channel, or for each row of a table; words -> 4 bits with one for each block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import CompressError
from ..models.quant_spec import CODES, LARGEST, LEAST_SCALE

Array = np.ndarray

LONG = 1024  # rows
_MOST, _FEWEST = 32, 8  # values of a block that shares a scale: fewer cost more bytes, more cost exactness
_BLOCK_CODES = 127  # of a block's scale: each stands for its square, with its sign
_RATIOS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)  # of a block's scale to the one that reaches its largest value
_ROWS = 4096  # that are rounded at once


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


@dataclass(frozen=True)
class Blocks:
    """A table [row, size] in 4 bits: `packed` int8 [row, block, size / 2] has two values a byte, those of a block's first half in
    the upper bits and those of its second half, plus 8, in the lower ones. Each is a level of -8 to 7, times the scale of its
    block: `unit` × code × |code|, of `codes` int8 [row, block, 1]."""

    packed: Array
    codes: Array
    unit: Array


def block_of(width: int) -> int | None:
    """Values of a row of `width` that share a scale: the largest even divisor up to 32; None where that is below 8."""
    return next((size for size in range(_MOST, _FEWEST - 1, -2) if width % size == 0), None)


def check_blocks(width: int) -> int:
    """As `block_of`. CompressError: there is none."""
    size = block_of(width)
    if size is None:
        raise CompressError(
            f"quantize.word_bits: 4 bits need rows that an even number from {_FEWEST} to {_MOST} divides, found {width} values a "
            "row; leave it out"
        )
    return size


def row_bytes(rows: int, width: int, *, bits: int = 8) -> int:
    """That a row of a table of so many rows takes, its scales included. `bits`: of a value, 4 or 8."""
    block = block_of(width) if bits == 4 and is_long(rows) else None
    if block is not None:
        return width // 2 + width // block
    return width + (1 if is_long(rows) else 4)


def block_levels(table: Array) -> Blocks:
    """A table [row, size] in 4 bits, a scale for each block of a row.

    There are more levels below zero than above: the scale has the sign that puts the value farthest from zero there. Of six scales
    each block has the one with the least squared error: to cut the farthest value off a little makes the others more exact.
    CompressError: no block of a practical size divides the rows.
    """
    size = check_blocks(table.shape[1])
    largest = np.maximum(np.abs(table).max(), np.float32(LEAST_SCALE)).astype(np.float32)
    unit = largest / np.float32(8 * _BLOCK_CODES**2)
    blocks = table.reshape(len(table), -1, size)
    parts = [_rounded(blocks[start : start + _ROWS], unit) for start in range(0, len(blocks), _ROWS)]
    levels, codes = (np.concatenate(each) for each in zip(*parts, strict=True))
    upper, lower = np.split(levels, 2, axis=2)
    return Blocks((16 * upper + lower + 8).astype(np.int8), codes.astype(np.int8), np.array(unit, np.float32))


def _rounded(blocks: Array, unit: np.float32) -> tuple[Array, Array]:
    """Levels [row, block, size] and codes [row, block, 1], whole numbers in float32."""
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(2, keepdims=True), 2)
    sign = np.where(farthest > 0, np.float32(-1), np.float32(1))
    best = None
    for ratio in _RATIOS:
        code = np.clip(np.ceil(np.sqrt(np.abs(farthest) * np.float32(ratio / 8) / unit)), 1, _BLOCK_CODES)
        codes = (sign * code).astype(np.float32)
        scale = codes * code * unit
        levels = np.clip(np.rint(blocks / scale), -8, 7)
        error = np.square(blocks - levels * scale).sum(2, keepdims=True)
        if best is None:
            best = error, levels, codes
        else:
            better = error < best[0]
            best = tuple(np.where(better, *each) for each in zip((error, levels, codes), best, strict=True))
    _, levels, codes = best  # type: ignore[misc]
    return levels, codes
