"""The unpadded form of a model file, with the same weights but without work on padding, and the choice between the two for a batch."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import CompressError
from .engine import Engine, OnnxRuntime
from .file_hashes import stamp
from .folder import unpadded_beside

FROM = 0.05  # share of padding in a batch from which on the unpadded form is faster (docs/runtime.md)


class UnpaddedForm:
    """The unpadded form of `engine`'s file, opened at the first batch that uses it. May be used from several threads. `check` raises if a
    file is not the bundle's; `listed`: the bundle has the form.

    The choice depends on the batch alone, so that the same call gives the same answers. An unpadded form that is missing, cannot be opened,
    or was replaced since the model was opened, is not used, with a warning: it only makes batches faster.
    """

    def __init__(
        self, engine: Engine, threads: int | None, check: Callable[[Path, Path], None], *, listed: bool
    ) -> None:
        self._padded, self._threads, self._check = engine, threads, check
        # Where the file is now: a link in its path may lead elsewhere, or a relative path, when the form is opened.
        self._place = engine.path.parent.resolve() / engine.path.name
        self._stamp = stamp(self._place)
        self._wanted = listed or unpadded_beside(self._place).is_file()
        self._unpadded: Engine | None = None
        self._lock = threading.Lock()

    def engine(self, lengths: np.ndarray) -> Engine:
        """Return the engine for a batch of texts of `lengths` tokens, padded to the longest."""
        size = int(lengths.max()) * len(lengths)
        if not self._wanted or size - int(lengths.sum()) < FROM * size:
            return self._padded
        with self._lock:
            if self._unpadded is None and self._wanted:
                self._unpadded = self._open()
                self._wanted = self._unpadded is not None
            return self._unpadded or self._padded

    def _open(self) -> Engine | None:
        try:
            self._check(unpadded_beside(self._padded.path), unpadded_beside(self._place))
            unpadded = open_unpadded(self._place, self._threads)
            if stamp(self._place) != self._stamp:
                raise CompressError(f"{self._place}: replaced since it was opened; open it again")
        except (CompressError, OSError) as error:
            warnings.warn(
                f"{error}; padded batches run without it, more slowly (`compress verify` says more)", stacklevel=2
            )
            return None
        return unpadded


def open_unpadded(model: Path, threads: int | None) -> Engine:
    """Open the unpadded form of a model file. CompressError: there is none, or it belongs to another model file."""
    return OnnxRuntime(unpadded_beside(model), threads, owner=model)
