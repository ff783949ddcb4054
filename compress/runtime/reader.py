"""Find the answers to questions in their contexts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Unpack, overload

import numpy as np

from ..errors import CheckFailed, CompressError
from .kinds import Answer
from .kinds.span import rank_answers
from .model_folder import OpenedModel, Options, check_sizes
from .passages import MOST_ANSWERS, Best, Passages
from .reading import MOST, PairReader

Pair = tuple[str, str]


class Reader(OpenedModel):
    """A model that finds the answer to a question in a text, on the CPU. One instance may be used from several threads. The options are
    those of `Classifier`.

    A context that is too long for the model is read in overlapping windows; the answer is the best span of all of them. An answer has at
    most 30 tokens; a question is cut to 64.

    `impossible`, in every method: a question may have no answer in its context, as in SQuAD 2.0. By default it is what bundle.json says of
    the task, and False if it is missing: then every question gets an answer. No answer is given if its score exceeds that of every span by
    more than `null_score_diff_threshold` of config.json, 0 by default.
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
        """Texts per example: 2, even if the folder does not say."""
        return super().columns or 2

    @overload
    def answer(self, question: str, context: str, *, n: None = None, impossible: bool | None = None) -> Answer: ...
    @overload
    def answer(self, question: str, context: str, *, n: int, impossible: bool | None = None) -> list[Answer]: ...
    def answer(
        self, question: str, context: str, *, n: int | None = None, impossible: bool | None = None
    ) -> Answer | list[Answer]:
        """Return the answer to one question; with `n` a list of the `n` likeliest, at most 20. Raises as `answers` does."""
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
        """Yield the answer to each pair of a question and a context, in order, while `pairs` is being read; memory is bounded by the
        longest context. With `n`, yield a list of the `n` likeliest for each, at most 20, which includes no answer if `impossible`.

        `window`, `tokens` and `batch_size` (windows of contexts in one model run) are those of `Classifier.classify`.

        Raises, after everything before it has been answered: `CompressError` naming an example that is no pair of texts, `CheckFailed` for
        a score that is not finite, and whatever `pairs` itself raises.
        """
        check_sizes(n=n, batch_size=batch_size, tokens=tokens, window=window)
        if n is not None and n > MOST_ANSWERS:
            raise CompressError(f"n is {n}; expected at most {MOST_ANSWERS}, which are held of each question")
        candidates = self._ranked_answers(pairs, self._impossible(impossible), batch_size, tokens, window)
        return (answers[0] for answers in candidates) if n is None else (answers[:n] for answers in candidates)

    def predict(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
    ) -> list[Answer]:
        """Return a list of what `answers` yields."""
        return list(self.answers(pairs, impossible=impossible, batch_size=batch_size, tokens=tokens))

    def outputs(
        self,
        pairs: Pair | Iterable[Pair],
        *,
        impossible: bool | None = None,
        batch_size: int | None = None,
        tokens: int | None = None,
    ) -> np.ndarray:
        """Return float32 [question, 4]: start, end, score and `none`, as in `Best.outputs`, from batches that depend on the texts alone.
        For a model that quantizes activations on the fly see `Classifier.logits`."""
        check_sizes(batch_size=batch_size, tokens=tokens)
        parts = self._best_answers(pairs, 1, batch_size, tokens, MOST)
        impossible, threshold = self._impossible(impossible), self.settings.threshold
        outputs = [best.outputs(impossible=impossible, threshold=threshold) for _, best in parts]
        return np.concatenate(outputs) if outputs else np.zeros((0, 4), np.float32)

    def _impossible(self, impossible: bool | None) -> bool:
        return self.settings.impossible if impossible is None else impossible

    def _best_answers(
        self, pairs: object, most: int, batch_size: int | None, tokens: int | None, window: int | None
    ) -> Iterator[tuple[list[Pair], Best]]:
        """Yield pairs read together, and their best answers. Only one run's token logits are in memory at a time."""
        for read in self._reader.windows(pairs, window):
            examples = [(question, context) for question, context in read]
            cut = self._passages([question for question, _ in examples], [context for _, context in examples])
            best = Best(cut, most=most)
            for chunk, logits in self._runs(cut.encodings, batch_size, tokens):
                best.add(chunk, logits)
            yield examples, best

    def _ranked_answers(
        self, pairs: object, impossible: bool, batch_size: int | None, tokens: int | None, window: int | None
    ) -> Iterator[list[Answer]]:
        answered = 0
        for examples, best in self._best_answers(pairs, MOST_ANSWERS, batch_size, tokens, window):
            scores = best.outputs(impossible=impossible, threshold=self.settings.threshold)[:, 2:]
            for number, (_, context) in enumerate(examples):
                if not np.isfinite(scores[number]).all():
                    raise CheckFailed(
                        f"{self.model}: gives a non-finite score for pairs[{answered}]; do not use this model"
                    )
                none = float(scores[number, 1]) if impossible else None
                yield rank_answers(context, best.n_best(number, MOST_ANSWERS), none, self.labels)
                answered += 1
