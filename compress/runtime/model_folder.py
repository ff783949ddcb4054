"""A folder opened on the CPU, and its model run on tokens in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from pathlib import Path
from threading import Lock
from typing import ClassVar, TypedDict

import numpy as np
import tokenizers

from ..errors import CompressError
from ..files.paths import expand_home
from .batches import chunks, pad_batch, tokens_per_run
from .engine import Engine
from .folder import read_settings, read_tokenizer
from .kinds.kind import Unit
from .listed_hashes import ListedHashes
from .runtimes import open_engine
from .unpadded import UnpaddedForm

_OPENED_BY: dict[Unit, tuple[str, str]] = {
    "text": ("labels texts", "Classifier"),
    "word": ("labels the words of texts", "Tagger"),
    "question": ("answers questions about texts", "Reader"),
    "choice": ("chooses among endings", "Chooser"),
    "pair": ("gives texts vectors", "Embedder"),
}


class Options(TypedDict, total=False):
    """How a folder is opened; `Classifier` documents the options."""

    precision: str | None
    threads: int | None
    runtime: str
    precision_hint: str | None
    verify: bool


class OpenedModel:
    """An opened folder, and its model; `Classifier` documents the options.

    `examples_read`: how many examples it has tokenized; `examples_cut`: of how many of them it did not read all, since they have more
    tokens than `settings.max_length`. Both stay 0 where long texts are read in windows.
    """

    _unit: ClassVar[Unit]  # what it answers

    def __init__(
        self,
        folder: str | Path,
        *,
        precision: str | None = None,
        threads: int | None = None,
        runtime: str = "onnxruntime",
        precision_hint: str | None = None,
        verify: bool = True,
    ) -> None:
        check_sizes(threads=threads)
        self.folder = expand_home(folder)
        self.settings = read_settings(self.folder)
        self._check_kind()
        self.runtime = runtime
        listed = ListedHashes(self.folder) if verify else None
        check = listed.check if listed else _accept_file
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            if (self.folder / name).exists() or (listed and listed.lists(name)):
                check(self.folder / name)
        self.precision, self._engine = open_engine(self.folder, precision, threads, runtime, precision_hint, check)
        self.tokenizer = read_tokenizer(self.folder / "tokenizer.json", self.settings)
        self._unpadded = UnpaddedForm(self._engine, threads, check) if runtime == "onnxruntime" else None
        self._lock, self.examples_read, self.examples_cut = Lock(), 0, 0

    def __repr__(self) -> str:
        labels = ", ".join(self.labels[:4]) + (f", … ({len(self.labels)})" if len(self.labels) > 4 else "")
        gives = f"labels: {labels}" if self.labels else f"vectors of {self.settings.width}"
        own = f"{type(self).__name__}({str(self.folder)!r}, precision={self.precision!r}"
        return f"{own}, runtime={self.runtime!r}, {gives})"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the outputs in order: those of the labels, or that of a score; empty for a model that makes vectors."""
        return self.settings.labels

    @property
    def columns(self) -> int | None:
        """Texts per example, 1 or 2, for a choice up to 3; None if the folder does not say."""
        return None if self.settings.columns is None else len(self.settings.columns)

    @property
    def model(self) -> Path:
        """The file that is run; padded batches may use the unpadded form beside it."""
        return self._engine.path

    @property
    def precision_hint(self) -> str | None:
        """The precision that OpenVINO computes in on this CPU: "f32" or "bf16"; None for ONNX Runtime, which has no choice."""
        return self._engine.hint

    def _check_kind(self) -> None:
        if self.settings.kind.unit == self._unit:
            return
        does, other = _OPENED_BY[self.settings.kind.unit]
        raise CompressError(
            f"{self.folder}: its model {does}; open it with compress.runtime.{other}, "
            "or with compress.runtime.load, which takes the right one"
        )

    def _count(self, cut: Sequence[bool]) -> None:
        """Count examples. `cut`: of each, whether it was cut."""
        with self._lock:
            self.examples_read += len(cut)
            self.examples_cut += sum(cut)

    def _runs(
        self, encodings: Sequence[tokenizers.Encoding], batch_size: int | None, tokens: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (indices of encodings that shared a run, its outputs), the shortest first."""
        lengths = np.array([len(encoding) for encoding in encodings], np.int64)
        size = tokens_per_run(int(lengths.sum())) if tokens is None else tokens
        for chunk in chunks(lengths, size, batch_size):
            engine = self._unpadded.engine(lengths[chunk]) if self._unpadded else self._engine
            yield chunk, self._run([encodings[i] for i in chunk], engine)

    def _run(self, encodings: list[tokenizers.Encoding], engine: Engine) -> np.ndarray:
        batch = pad_batch(encodings, engine.inputs, self.settings.pad_id)
        outputs = engine.run(batch)
        rows, length = batch["input_ids"].shape
        width = len(self.labels) or self.settings.width
        expected = [rows, *([length] if self._unit in ("word", "question") else []), width]
        if list(outputs.shape) != expected:
            what, has = ("scores", "labels") if self.labels else ("sentence_embedding", "numbers for a token")
            raise CompressError(
                f"{engine.path}: expected {what} {expected} (config.json has {width} {has}), "
                f"found {list(outputs.shape)}; the model and config.json do not belong together"
            )
        return outputs


def check_sizes(**sizes: int | None) -> None:
    """Raise `CompressError` for a size that is not None, and not a whole number of at least 1."""
    for name, value in sizes.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise CompressError(f"{name} is {value!r}; expected at least 1, a whole number")


def _accept_file(path: Path, real: Path | None = None) -> None:
    """Accept any file."""
