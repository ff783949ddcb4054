"""Arrays of numbers in files that can be filled in any order."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

_AT_ONCE = 1 << 24  # bytes of a write


def zeros_file(path: Path, shape: tuple[int, ...]) -> np.memmap:
    """Create a .npy file of float32 zeros and return it as a memory map, to be filled and flushed.

    All of it is written first, so that a full disk raises an `OSError` here. A sparse file reserves no space: the system
    would kill the process at the first write that finds none (SIGBUS).
    """
    kind = np.dtype(np.float32)
    left = math.prod(shape) * kind.itemsize
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": shape})
        while left:
            left -= file.write(bytes(min(left, _AT_ONCE)))
    return np.lib.format.open_memmap(path, mode="r+")
