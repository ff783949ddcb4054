"""Texts in, predictions out: tokenize, batch by length, run the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tokenizers

from ..errors import CheckFailed, CompressError
from ..machine import usable_cores
from .batches import chunks, padded
from .budget import DEFAULT, Budget, bounded
from .engine import Engine
from .folder import read_settings, read_tokenizer
from .packing import Packing
from .reading import MOST, Reader, Text
from .runtimes import open_engine


@dataclass(frozen=True)
class Prediction:
    """The most probable label, its probability, and all of them by label.

    Regression: `score` is the model's output, `label` is None and `scores` is empty.
    """

    label: str | None
    score: float
    scores: dict[str, float] = field(default_factory=dict)


class Classifier:
    """A text classifier or regressor on the CPU. One instance may be used from several threads.

    `precision` is "int8" or "fp32"; left out, int8 where the folder has it. `threads` is for one model
    run (default: the usable cores). `runtime` is "onnxruntime" or "openvino"; with the latter `precision_hint`
    is "f32" (the default) or "bf16". Raises `CompressError` naming the file or the argument that is missing or wrong.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        precision: str | None = None,
        threads: int | None = None,
        runtime: str = "onnxruntime",
        precision_hint: str | None = None,
    ) -> None:
        _check_sizes(threads=threads)
        self.folder = Path(folder)
        self.settings = read_settings(self.folder)
        self.runtime = runtime
        self.precision, self._engine = open_engine(self.folder, precision, threads, runtime, precision_hint)
        self.tokenizer = read_tokenizer(self.folder / "tokenizer.json", self.settings)
        self._reader = Reader(self.settings.columns)
        self._packing = Packing(self._engine, threads) if runtime == "onnxruntime" else None
        self._budget = Budget(self._engine, threads or usable_cores())

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names in the order of the logits; one name for regression."""
        return self.settings.labels

    @property
    def columns(self) -> int | None:
        """Texts per example, 1 or 2; None where the folder does not say."""
        return None if self.settings.columns is None else len(self.settings.columns)

    @property
    def model(self) -> Path:
        """The file that is run; padded batches may go through the packed form beside it."""
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
        `batch_size` texts; left out, `tokens` is what is fastest on this machine (docs/runtime.md).

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
        parts = list(self._outputs(self._reader.windows(texts, MOST), batch_size, tokens, adaptive=False))
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), np.float32)

    def _outputs(
        self, windows: Iterator[list[Text]], batch_size: int | None, tokens: int | None, adaptive: bool = True
    ) -> Iterator[np.ndarray]:
        """`adaptive`: the cut may depend on what was answered before."""
        for window in windows:
            encodings = self.tokenizer.encode_batch_fast(window)  # type: ignore[arg-type]
            lengths = np.array([len(encoding) for encoding in encodings])
            size = int(lengths.sum())
            if tokens is not None:
                budget = tokens
            elif adaptive:
                budget = self._budget.tokens(lambda e=encodings: (one.ids for one in e), size)
            else:
                budget = bounded(DEFAULT, size)
            outputs = np.zeros((len(window), len(self.labels)), np.float32)
            for chunk in chunks(lengths, budget, batch_size):
                engine = self._packing.engine(lengths[chunk]) if self._packing else self._engine
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
            yield from self._answers(good)
            answered += len(good)
            if len(good) < len(outputs):
                raise CheckFailed(
                    f"{self.model}: gives a non-finite score for texts[{answered}]; do not use this model"
                )

    def _answers(self, outputs: np.ndarray) -> Iterator[Prediction]:
        if self.settings.regression:
            yield from (Prediction(None, float(row[0])) for row in outputs)
            return
        for probabilities in softmax(outputs):
            scores = dict(zip(self.labels, map(float, probabilities), strict=True))
            best = self.labels[int(probabilities.argmax())]
            yield Prediction(best, scores[best], scores)


def _check_sizes(**sizes: int | None) -> None:
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise CompressError(f"{name} is {value}; expected at least 1")


def softmax(logits: np.ndarray) -> np.ndarray:
    """float64 [texts, classes]; each row sums to 1."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(axis=1, keepdims=True)
