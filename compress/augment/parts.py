"""Arrays that take long to make, each kept in a file as soon as it is made."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np


def kept_or_made(path: Path | None, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """The int32 array in the file at `path`, or a new one, put there whole; without `path` nothing is kept.

    A file of another shape, or cut short, is made again.
    """
    found = None if path is None else _read(path)
    if found is not None and found.shape == shape and found.dtype == np.int32:
        return found
    made = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.save(file, made, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    return made


def _read(path: Path) -> np.ndarray | None:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
