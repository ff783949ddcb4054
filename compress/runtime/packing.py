"""The packed form of a model file: the same weights, without work on padding. Which of the two a batch is run by."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import numpy as np

from ..errors import CompressError
from .engine import Engine, OnnxRuntime
from .folder import packed_beside

FROM = 0.05  # of a batch is padding: from here on the packed form is faster (docs/runtime.md)


class Packing:
    """The packed form of `engine`'s file, opened at the first batch that wants it. May be used from several threads.

    The batch alone decides, so that the same call gives the same answers. A packed form that cannot be opened, or that
    was replaced since the model was opened, is left alone with a warning: it is a gain in speed and no more.
    """

    def __init__(self, engine: Engine, threads: int | None) -> None:
        self._padded, self._threads = engine, threads
        self._stamp = _stamp(engine.path)
        self._wanted = packed_beside(engine.path).is_file()
        self._packed: Engine | None = None
        self._lock = threading.Lock()

    def engine(self, lengths: np.ndarray) -> Engine:
        """Who runs a batch of texts of `lengths` tokens, padded to the longest."""
        size = int(lengths.max()) * len(lengths)
        if not self._wanted or size - int(lengths.sum()) < FROM * size:
            return self._padded
        with self._lock:
            if self._packed is None and self._wanted:
                self._packed = self._open()
                self._wanted = self._packed is not None
            return self._packed or self._padded

    def _open(self) -> Engine | None:
        try:
            packed = open_packed(self._padded.path, self._threads)
            if _stamp(self._padded.path) != self._stamp:
                raise CompressError(f"{self._padded.path}: replaced since it was opened; open it again")
        except (CompressError, OSError) as error:
            warnings.warn(
                f"{error}; padded batches run without it, more slowly (`compress verify` tells more)", stacklevel=2
            )
            return None
        return packed


def open_packed(model: Path, threads: int | None) -> Engine:
    """The packed form of a model file. CompressError: there is none, or it belongs to another model file."""
    return OnnxRuntime(packed_beside(model), threads, owner=model)


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
