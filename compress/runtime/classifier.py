"""Texts in, predictions out: tokenize, batch by length, run the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tokenizers

from ..errors import CheckFailed, CompressError
from .batches import chunks, padded, tokens_per_run
from .cutting import Cutter
from .engine import Engine
from .folder import read_settings, read_tokenizer
from .kinds import Prediction
from .listed import Listed
from .reading import MOST, Reader, Text
from .runtimes import open_engine
from .unpadded import UnpaddedForm


class Classifier:
    """A text classifier or regressor on the CPU. One instance may be used from several threads.

    `precision` is "int8" or "fp32"; left out, int8 where the folder has it. `threads` is for one model
    run (default: the usable cores). `runtime` is "onnxruntime" or "openvino"; with the latter `precision_hint`
    is "f32" (the default) or "bf16". `verify` holds the files that are run against the SHA-256 that a bundle lists: each is
    read once more, the first time. Raises `CompressError` naming the file or the argument that is missing or wrong.
    """

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
        _check_sizes(threads=threads)
        self.folder = Path(folder)
        self.settings = read_settings(self.folder)
        self.runtime = runtime
        check = Listed(self.folder).check if verify else _unchecked
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            if (self.folder / name).exists():
                check(self.folder / name)
        self.precision, self._engine = open_engine(self.folder, precision, threads, runtime, precision_hint, check)
        self.tokenizer = read_tokenizer(self.folder / "tokenizer.json", self.settings)
        self._cutter = Cutter(self.tokenizer)
        self._reader = Reader(self.settings.columns)
        self._unpadded = UnpaddedForm(self._engine, threads, check) if runtime == "onnxruntime" else None

    def __repr__(self) -> str:
        labels = ", ".join(self.labels[:4]) + (f", … ({len(self.labels)})" if len(self.labels) > 4 else "")
        return f"Classifier({str(self.folder)!r}, precision={self.precision!r}, runtime={self.runtime!r}, labels: {labels})"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the outputs in their order: those of the classes, or that of a score."""
        return self.settings.labels

    @property
    def columns(self) -> int | None:
        """Texts per example, 1 or 2; None where the folder does not say."""
        return None if self.settings.columns is None else len(self.settings.columns)

    @property
    def model(self) -> Path:
        """The file that is run; padded batches may go through the unpadded form beside it."""
        return self._engine.path

    @property
    def precision_hint(self) -> str | None:
        """What OpenVINO computes in on this CPU: "f32" or "bf16"; None for ONNX Runtime, which has no choice."""
        return self._engine.hint

    def classify(
        self,
        texts: Text | Iterable[Text],
        *,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[Prediction]:
        """One prediction per text, in order, while `texts` is being read; memory is bounded however many there are.

        `texts` holds strings, or pairs of strings where the task has two text columns; a single one may be
        given bare. They are read a window at a time: 256 of a stream, then 512, up to 4,096, or `window` of them.
        Inside one, texts of like length share a model run of at most `tokens` tokens, padding included, and
        `batch_size` texts; left out, `tokens` is 512, or less for a small window (docs/runtime.md).

        Raises, after everything before it has been answered: `CompressError` naming an example that is no text,
        `CheckFailed` for a score that is not finite, and whatever `texts` itself raises.
        """
        _check_sizes(batch_size=batch_size, tokens=tokens, window=window)
        return self._predictions(self._outputs(self._reader.windows(texts, window), batch_size, tokens))

    def predict(
        self, texts: Text | Iterable[Text], *, batch_size: int | None = None, tokens: int | None = None
    ) -> list[Prediction]:
        """The list of what `classify` yields."""
        return list(self.classify(texts, batch_size=batch_size, tokens=tokens))

    def logits(
        self, texts: Text | Iterable[Text], *, batch_size: int | None = None, tokens: int | None = None
    ) -> np.ndarray:
        """float32 [texts, classes], in the order given, from batches that depend on the texts alone.

        An int8 model that quantizes activations on the fly scales them per batch, so its answers depend on
        what shares a batch; `batch_size=1` makes each answer independent.
        """
        _check_sizes(batch_size=batch_size, tokens=tokens)
        parts = list(self._outputs(self._reader.windows(texts, MOST), batch_size, tokens))
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), np.float32)

    def _outputs(
        self, windows: Iterator[list[Text]], batch_size: int | None, tokens: int | None
    ) -> Iterator[np.ndarray]:
        for window in windows:
            encodings = self.tokenizer.encode_batch_fast([*map(self._cutter.cut, window)])  # type: ignore[arg-type]
            lengths = np.array([len(encoding) for encoding in encodings])
            size = tokens_per_run(int(lengths.sum())) if tokens is None else tokens
            outputs = np.zeros((len(window), len(self.labels)), np.float32)
            for chunk in chunks(lengths, size, batch_size):
                engine = self._unpadded.engine(lengths[chunk]) if self._unpadded else self._engine
                outputs[chunk] = self._run([encodings[i] for i in chunk], engine)
            yield outputs

    def _run(self, encodings: list[tokenizers.Encoding], engine: Engine) -> np.ndarray:
        outputs = engine.run(padded(encodings, engine.inputs, self.settings.pad_id))
        if outputs.shape != (len(encodings), len(self.labels)):
            raise CompressError(
                f"{engine.path}: expected scores [{len(encodings)}, {len(self.labels)}] (config.json has "
                f"{len(self.labels)} labels), found {list(outputs.shape)}; the model and config.json do not belong together"
            )
        return outputs

    def _predictions(self, parts: Iterator[np.ndarray]) -> Iterator[Prediction]:
        answered = 0
        for outputs in parts:
            finite = np.isfinite(outputs).all(axis=1)
            good = outputs if finite.all() else outputs[: int(finite.argmin())]
            yield from self.settings.kind.answers(self.labels, good)
            answered += len(good)
            if len(good) < len(outputs):
                raise CheckFailed(
                    f"{self.model}: gives a non-finite score for texts[{answered}]; do not use this model"
                )


def _unchecked(path: Path) -> None:
    """Any file will do."""


def _check_sizes(**sizes: int | None) -> None:
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise CompressError(f"{name} is {value}; expected at least 1")
