"""Arrays of numbers in files that are filled in any order."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

_AT_ONCE = 1 << 24  # bytes of a write


def zeros_file(path: Path, shape: tuple[int, ...]) -> np.memmap:
    """A new .npy of float32 zeros, as a map of the file, to be filled and flushed.

    All of it is written first, so that a disk without room is an `OSError` here. A file with holes has no room of its own: the system
    would end the process at the first number that finds none (SIGBUS).
    """
    kind = np.dtype(np.float32)
    left = math.prod(shape) * kind.itemsize
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": shape})
        while left:
            left -= file.write(bytes(min(left, _AT_ONCE)))
    return np.lib.format.open_memmap(path, mode="r+")
