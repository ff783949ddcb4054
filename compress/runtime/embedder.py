"""Compute the vectors of texts, and the cosines of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Unpack

import numpy as np

from ..errors import CheckFailed
from .cutting import Cutter, cut_flags
from .kinds import VectorAnswer
from .model_folder import OpenedModel, Options, check_sizes
from .reading import MOST, Text, TextReader

SENTENCE = ("text",)  # the column of an example of `vectors`


class Embedder(OpenedModel):
    """A sentence encoder on the CPU: a vector of length 1 for each text, so that the cosine of two texts is the product of their vectors.
    One instance may be used from several threads. The options are those of `Classifier`.

    A text that is too long for the model is cut. Vectors are those of the graph's output `sentence_embedding`.
    """

    _unit = "pair"

    def __init__(self, folder: str | Path, **options: Unpack[Options]) -> None:
        super().__init__(folder, **options)
        self._cutter = Cutter(self.tokenizer)

    @property
    def columns(self) -> None:
        """Texts per example: None, for one or two. A task has pairs, of which the model reads each text alone."""
        return

    @property
    def width(self) -> int:
        """Length of a vector."""
        return self.settings.width

    def embed(
        self, texts: str | Iterable[str], *, batch_size: int | None = None, tokens: int | None = None
    ) -> np.ndarray:
        """Return float32 [texts, width], in the order given, from batches that depend on the texts alone; for a bare text [1, width]. For a
        model that quantizes activations on the fly see `Classifier.logits`. Raises as `vectors` does."""
        check_sizes(batch_size=batch_size, tokens=tokens)
        parts = [vectors for _, vectors in self._checked_vectors(texts, TextReader(SENTENCE), batch_size, tokens, MOST)]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), np.float32)

    def vectors(
        self,
        texts: str | Iterable[str],
        *,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[np.ndarray]:
        """Yield float32 [width] for each text, in order, while `texts` is being read; memory is bounded however many there are.

        `window`, `tokens` and `batch_size` are those of `Classifier.classify`.

        Raises, after everything before it has been answered: `CompressError` naming an example that is no text, `CheckFailed` for a number
        that is not finite, and whatever `texts` itself raises.
        """
        check_sizes(batch_size=batch_size, tokens=tokens, window=window)
        parts = self._checked_vectors(texts, TextReader(SENTENCE), batch_size, tokens, window)
        return (vector.copy() for _, vectors in parts for vector in vectors)  # a view would keep its whole window

    def answers(
        self,
        texts: Text | Iterable[Text],
        *,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[VectorAnswer]:
        """As `vectors`, for texts and pairs: for a pair yields the cosine of its two texts, as the `score` of a `Prediction`."""
        check_sizes(batch_size=batch_size, tokens=tokens, window=window)
        return self._answers(self._checked_vectors(texts, TextReader(None), batch_size, tokens, window))

    def predict(
        self, texts: Text | Iterable[Text], *, batch_size: int | None = None, tokens: int | None = None
    ) -> list[VectorAnswer]:
        """Return a list of what `answers` yields."""
        return list(self.answers(texts, batch_size=batch_size, tokens=tokens))

    def _answers(self, parts: Iterator[tuple[list[Text], np.ndarray]]) -> Iterator[VectorAnswer]:
        for examples, vectors in parts:
            row = 0
            for example in examples:
                if isinstance(example, str):
                    yield vectors[row].copy()
                else:
                    cosine = vectors[row] @ vectors[row + 1]
                    yield from self.settings.kind.answers((), np.array([[cosine]]))
                row += 1 if isinstance(example, str) else 2

    def _checked_vectors(
        self, texts: object, reader: TextReader, batch_size: int | None, tokens: int | None, window: int | None
    ) -> Iterator[tuple[list[Text], np.ndarray]]:
        """Yield examples read together, and float32 [text, width] of all their texts, one after another. CheckFailed: see `vectors`."""
        answered = 0
        for examples in reader.windows(texts, window):
            vectors = self._outputs(examples, batch_size, tokens)
            good = _count_finite(examples, np.asarray(np.isfinite(vectors).all(axis=1)))
            yield examples[:good], vectors[: sum(map(_size, examples[:good]))]
            answered += good
            if good < len(examples):
                raise CheckFailed(
                    f"{self.model}: gives a non-finite number for texts[{answered}]; do not use this model"
                )

    def _outputs(self, examples: list[Text], batch_size: int | None, tokens: int | None) -> np.ndarray:
        texts = [part for example in examples for part in ((example,) if isinstance(example, str) else example)]
        encodings = self._cutter.encode(texts)
        cut, ends = cut_flags(encodings), np.cumsum([*map(_size, examples)])
        self._count([any(cut[end - _size(example) : end]) for example, end in zip(examples, ends, strict=True)])
        vectors = np.zeros((len(texts), self.width), np.float32)
        for chunk, outputs in self._runs(encodings, batch_size, tokens):
            vectors[chunk] = outputs
        return vectors


def _size(example: Text) -> int:
    return 1 if isinstance(example, str) else 2


def _count_finite(examples: list[Text], finite: np.ndarray) -> int:
    """Return the number of examples before the first with a text that is not `finite` [text]."""
    if finite.all():
        return len(examples)
    starts = np.cumsum([0, *map(_size, examples)])
    return int(np.searchsorted(starts, int(finite.argmin()), side="right")) - 1
