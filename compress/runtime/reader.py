"""Questions and contexts in, the parts of the contexts that answer them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Unpack, overload

import numpy as np

from ..errors import CheckFailed, CompressError
from .kinds import Answer
from .kinds.span import ranked
from .model_folder import OpenedModel, Options, check_sizes
from .passages import MOST_ANSWERS, Best, Passages
from .reading import MOST, PairReader

Pair = tuple[str, str]


class Reader(OpenedModel):
    """A model that finds the answer to a question in a text, on the CPU. One instance may be used from several threads. The options
    are those of `Classifier`.

    A context longer than the model reads beside the question goes through it in windows that overlap; the answer is the best span of
    all of them. An answer has at most 30 tokens, and a question 64; more of it are not read.

    `impossible`, of every method: a question may have no answer in its context, as in SQuAD 2.0. Left out, it is what bundle.json says
    of the task, and False where nothing says it: then every question gets one. No answer is given where the score of none is above
    that of every span by more than `null_score_diff_threshold` of config.json, 0 where it has none.
    """

    _unit = "question"

    def __init__(self, folder: str | Path, **options: Unpack[Options]) -> None:
        super().__init__(folder, **options)
        if self.columns != 2:
            raise CompressError(
                f"{self.folder / 'bundle.json'}: text_columns: expected two, a question and its context, found 1"
            )
        self._passages = Passages(self.tokenizer, self.settings.max_length)
        self._reader = PairReader(self.settings.columns or ("question", "context"))

    @property
    def columns(self) -> int | None:
        """Texts per example: 2, also where the folder does not say."""
        return super().columns or 2

    @overload
    def answer(self, question: str, context: str, *, n: None = None, impossible: bool | None = None) -> Answer: ...
    @overload
    def answer(self, question: str, context: str, *, n: int, impossible: bool | None = None) -> list[Answer]: ...
    def answer(
        self, question: str, context: str, *, n: int | None = None, impossible: bool | None = None
    ) -> Answer | list[Answer]:
        """The answer to one question; with `n` a list of the `n` likeliest, at most 20. Raises as `answers` does."""
        return next(self.answers([(question, context)], n=n, impossible=impossible))  # type: ignore[call-overload]

    @overload
    def answers(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        n: None = None,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[Answer]: ...
    @overload
    def answers(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        n: int,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[list[Answer]]: ...
    def answers(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        n: int | None = None,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[Answer] | Iterator[list[Answer]]:
        """The answer to each pair of a question and a context, in order, while `pairs` is being read; memory is bounded by the longest
        context. With `n` a list for each, of the `n` likeliest, at most 20; no answer is among them where `impossible`.

        `window`, `tokens` and `batch_size` (windows of contexts in one model run) are those of `Classifier.classify`.
        Raises, after everything before it has been answered: `CompressError` naming an example that is no pair of texts,
        `CheckFailed` for a score that is not finite, and whatever `pairs` itself raises.
        """
        check_sizes(n=n, batch_size=batch_size, tokens=tokens, window=window)
        if n is not None and n > MOST_ANSWERS:
            raise CompressError(f"n is {n}; expected at most {MOST_ANSWERS}, which are held of each question")
        found = self._ranked(pairs, self._impossible(impossible), batch_size, tokens, window)
        return (answers[0] for answers in found) if n is None else (answers[:n] for answers in found)

    def predict(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
    ) -> list[Answer]:
        """The list of what `answers` yields."""
        return list(self.answers(pairs, impossible=impossible, batch_size=batch_size, tokens=tokens))

    def outputs(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
    ) -> np.ndarray:
        """float32 [question, 4]: start, end, score and `none`, as `Best.outputs` has them, from batches that depend on the texts alone.
        Of a model that quantizes activations on the fly see `Classifier.logits`."""
        check_sizes(batch_size=batch_size, tokens=tokens)
        parts = self._best(pairs, 1, batch_size, tokens, MOST)
        asked, threshold = self._impossible(impossible), self.settings.threshold
        found = [best.outputs(impossible=asked, threshold=threshold) for _, best in parts]
        return np.concatenate(found) if found else np.zeros((0, 4), np.float32)

    def _impossible(self, asked: bool | None) -> bool:
        return self.settings.impossible if asked is None else asked

    def _best(
        self, pairs: object, most: int, batch_size: int | None, tokens: int | None, window: int | None
    ) -> Iterator[tuple[list[Pair], Best]]:
        """Pairs read together, and what answers them. Of the logits of tokens only those of one run are there at a time."""
        for read in self._reader.windows(pairs, window):
            examples = [(question, context) for question, context in read]
            cut = self._passages([question for question, _ in examples], [context for _, context in examples])
            best = Best(cut, most=most)
            for chunk, found in self._runs(cut.encodings, batch_size, tokens):
                best.add(chunk, found)
            yield examples, best

    def _ranked(
        self, pairs: object, impossible: bool, batch_size: int | None, tokens: int | None, window: int | None
    ) -> Iterator[list[Answer]]:
        answered = 0
        for examples, best in self._best(pairs, MOST_ANSWERS, batch_size, tokens, window):
            scores = best.outputs(impossible=impossible, threshold=self.settings.threshold)[:, 2:]
            for number, (_, context) in enumerate(examples):
                if not np.isfinite(scores[number]).all():
                    raise CheckFailed(
                        f"{self.model}: gives a non-finite score for pairs[{answered}]; do not use this model"
                    )
                none = float(scores[number, 1]) if impossible else None
                yield ranked(context, best.n_best(number, MOST_ANSWERS), none, self.labels)
                answered += 1
