"""The packed form of a model file: the same weights, without work on padding. Which of the two a batch is run by."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import numpy as np

from ..errors import CompressError
from ..sessions import WEIGHTS
from .engine import Engine, OnnxRuntime
from .folder import packed_beside

FROM = 0.05  # of a batch is padding: from here on the packed form is faster (docs/runtime.md)
WORTH = 2048  # tokens of padding to have computed before it is opened: it takes time and memory


class Packing:
    """The packed form of `engine`'s file, opened when it is worth it. May be used from several threads."""

    def __init__(self, engine: Engine, threads: int | None) -> None:
        self._padded, self._threads = engine, threads
        self._path = packed_beside(engine.path)
        self._packed: Engine | None = None
        self._lock = threading.Lock()
        self._wasted = 0

    def engine(self, lengths: np.ndarray) -> Engine:
        """Who runs a batch of texts of `lengths` tokens, padded to the longest. CompressError: the packed file is not
        one, or belongs to another model file."""
        size = int(lengths.max()) * len(lengths)
        padding = size - int(lengths.sum())
        if padding < FROM * size or not self._path.is_file():
            return self._padded
        with self._lock:
            self._wasted += padding
            if self._packed is None and self._wasted > WORTH:
                self._packed = open_packed(self._padded.path, self._threads)
            return self._packed or self._padded


def open_packed(model: Path, threads: int | None) -> Engine:
    """The packed form of a model file. CompressError: there is none, or it belongs to another model file."""
    path = packed_beside(model)
    packed = OnnxRuntime(path, threads)
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if packed.metadata.get(WEIGHTS) != digest:
        raise CompressError(
            f"{path}: made for another {model.name} than the one beside it; remove it, or ship the bundle again"
        )
    return packed
