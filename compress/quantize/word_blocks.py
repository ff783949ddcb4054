"""fp32 word tables -> 4 bits per value, with a scale for each block of a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import CompressError
from ..models.fake_quant.spec import LEAST_SCALE
from .weights import is_long

Array = np.ndarray

_MOST, _FEWEST = 32, 8  # values of a block with one scale: fewer cost more bytes, more cost accuracy
_BLOCK_CODES = 127  # largest code of a block's scale; a code stands for its square, with its sign
# Candidate scales of a block, relative to the one that reaches its largest value.
_RATIOS = (
    1.0,
    0.95,
    0.9,
    0.85,
    0.8,
    0.75,
)
_ROWS = 1024  # rounded at once


@dataclass(frozen=True)
class Blocks:
    """A table [row, width] in 4 bits: `packed` int8 [row, block, block size / 2] has two values per byte, those of a block's
    first half in the upper bits and those of its second half, plus 8, in the lower ones. Each is a whole number from -8 to 7, times
    the scale of its block: `unit` × code × |code|, with `codes` int8 [row, block, 1]."""

    packed: Array
    codes: Array
    unit: Array


def block_of(width: int) -> int | None:
    """Return how many values of a row of `width` share a scale: the largest even divisor up to 32; None if that is below 8."""
    return next((size for size in range(_MOST, _FEWEST - 1, -2) if width % size == 0), None)


def check_blocks(width: int) -> int:
    """Return `block_of` the width. CompressError: there is none."""
    size = block_of(width)
    if size is None:
        raise CompressError(
            f"quantize.word_bits: 4 bits need rows that an even number from {_FEWEST} to {_MOST} divides, found {width} values a "
            "row; leave it out"
        )
    return size


def row_bytes(rows: int, width: int, *, bits: int = 8) -> int:
    """Return the bytes of a row in a table of `rows` rows, scales included. `bits` per value: 4, 8, or 32 for fp32."""
    if bits == 32:
        return 4 * width
    block = block_of(width) if bits == 4 and is_long(rows) else None
    if block is not None:
        return width // 2 + width // block
    return width + (1 if is_long(rows) else 4)


def quantize_blocks(table: Array) -> Blocks:
    """Quantize a table [row, size] to 4 bits, with a scale for each block of a row.

    There are more quantized values below zero than above, so the sign of the scale puts the value farthest from zero there. Each block
    takes the one of six scales with the least squared error: clipping the farthest value slightly makes the others more
    exact. CompressError: no block of a practical size divides the rows.
    """
    size = check_blocks(table.shape[1])
    largest = np.maximum(np.abs(table).max(), np.float32(LEAST_SCALE)).astype(np.float32)
    unit = largest / np.float32(8 * _BLOCK_CODES**2)
    blocks = table.reshape(len(table), -1, size)
    parts = [_round_blocks(blocks[start : start + _ROWS], unit) for start in range(0, len(blocks), _ROWS)]
    quantized, codes = (np.concatenate(each) for each in zip(*parts, strict=True))
    # Pack a byte of two values: the first half of a block in the upper bits, the second half in the lower ones.
    upper, lower = np.split(quantized, 2, axis=2)
    return Blocks((16 * upper + lower + 8).astype(np.int8), codes.astype(np.int8), np.array(unit, np.float32))


def _round_blocks(blocks: Array, unit: np.float32) -> tuple[Array, Array]:
    """Return quantized values [row, block, size] and codes [row, block, 1], whole numbers in float32."""
    # The value farthest from zero, and the scale, in units, with which it becomes -8.
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(2, keepdims=True), 2)
    reaching = np.abs(farthest) / np.float32(8) / unit
    # Candidates, [ratio, row, block, 1]: the codes of six scales, negative if that value is positive.
    ratios = np.array(_RATIOS, np.float32).reshape(-1, 1, 1, 1)
    code = np.clip(np.ceil(np.sqrt(ratios * reaching)), 1, _BLOCK_CODES)
    codes = np.where(farthest > 0, -code, code)
    scales = codes * code * unit
    quantized = np.clip(np.rint(blocks / scales), -8, 7)
    # Each block takes the candidate with the least squared error.
    error = np.square(blocks - quantized * scales).sum(3, keepdims=True)
    best = error.argmin(0)[None]
    return np.take_along_axis(quantized, best, 0)[0], np.take_along_axis(codes, best, 0)[0]
