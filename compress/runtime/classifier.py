"""Texts in, predictions out: tokenize, batch by length, run the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Unpack

import numpy as np

from ..errors import CheckFailed
from .cutting import Cutter, cut_flags
from .kinds import Prediction
from .model_folder import OpenedModel, Options, check_sizes
from .reading import MOST, Text, TextReader


class Classifier(OpenedModel):
    """A text classifier or regressor on the CPU. One instance may be used from several threads.

    `precision` is "int8", "fp32", "avx2" or "qdq"; default: int8 if the folder has it, with OpenVINO qdq.
    `threads` is for one model run (default: the usable cores). `runtime` is "onnxruntime" or "openvino"; with the latter
    `precision_hint` is "f32" (the default) or "bf16". `verify` checks the files that are run against the SHA-256 that a bundle lists:
    each is read once more, the first time. Raises `CompressError` naming the file or the argument that is missing or wrong.
    """

    _unit = "text"

    def __init__(self, folder: str | Path, **options: Unpack[Options]) -> None:
        super().__init__(folder, **options)
        self._cutter = Cutter(self.tokenizer)
        self._reader = TextReader(self.settings.columns)

    def classify(
        self,
        texts: Text | Iterable[Text],
        *,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[Prediction]:
        """Yield one prediction per text, in order, while `texts` is being read; memory is bounded however many there are.

        `texts` holds strings, or pairs of strings if the task has two text columns; a single one may be passed bare. They are read a window
        at a time: 256 of a stream, then 512, up to 4,096, or `window` of them. Within a window, texts of similar length share a model run
        of at most `tokens` tokens, padding included, and `batch_size` texts; by default `tokens` is 512, or less for a small window
        (docs/runtime.md).

        Raises, after everything before it has been answered: `CompressError` naming an example that is no text, `CheckFailed` for a score
        that is not finite, and whatever `texts` itself raises.
        """
        check_sizes(batch_size=batch_size, tokens=tokens, window=window)
        return self._predictions(self._outputs(self._reader.windows(texts, window), batch_size, tokens))

    def predict(
        self, texts: Text | Iterable[Text], *, batch_size: int | None = None, tokens: int | None = None
    ) -> list[Prediction]:
        """Return a list of what `classify` yields."""
        return list(self.classify(texts, batch_size=batch_size, tokens=tokens))

    def logits(
        self, texts: Text | Iterable[Text], *, batch_size: int | None = None, tokens: int | None = None
    ) -> np.ndarray:
        """Return float32 [texts, classes], in the order given, from batches that depend on the texts alone.

        An int8 model that quantizes activations on the fly scales them per batch, so its answers depend on the other texts of a batch;
        `batch_size=1` makes each answer independent.
        """
        check_sizes(batch_size=batch_size, tokens=tokens)
        parts = list(self._outputs(self._reader.windows(texts, MOST), batch_size, tokens))
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), np.float32)

    def _outputs(
        self, windows: Iterator[list[Text]], batch_size: int | None, tokens: int | None
    ) -> Iterator[np.ndarray]:
        for window in windows:
            encodings = self._cutter.encode(window)
            self._count(cut_flags(encodings))
            outputs = np.zeros((len(window), len(self.labels)), np.float32)
            for chunk, logits in self._runs(encodings, batch_size, tokens):
                outputs[chunk] = logits
            yield outputs

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
