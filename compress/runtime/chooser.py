"""Choose the ending that fits a context best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
import tokenizers

from ..errors import CheckFailed, CompressError
from .cutting import cut_flags
from .endings import EndingCutter
from .kinds.choice import Chosen, choose_ending
from .model_folder import OpenedModel, Options, check_sizes
from .reading import MOST, TextReader, Windowed, check_unicode

Question = tuple[str, Sequence[str]]  # a context, or a question, and two endings or more


class QuestionReader(Windowed[Question]):
    """Contexts, each with its endings."""

    name = "questions"

    def _checked(self, index: int, example: object) -> Question:
        if not isinstance(example, (tuple, list)) or len(example) != 2:
            raise CompressError(
                f"questions[{index}]: expected a context and its endings, found {type(example).__name__}"
            )
        context, endings = example
        check_question(f"questions[{index}]: ", context, endings)
        return context, list(endings)

    def _characters(self, example: Question) -> int:
        context, endings = example
        return len(context) * len(endings) + sum(map(len, endings))


class EndingReader(TextReader):
    """Pairs of a context and an ending."""

    name = "pairs"

    def __init__(self) -> None:
        super().__init__(("context", "ending"))


class Chooser(OpenedModel):
    """A model that chooses one of several endings, on the CPU. One instance may be used from several threads. The options are those of
    `Classifier`.

    The model reads the context with each ending; the softmax of its scores gives the endings' probabilities. If a pair is too long, the
    context is cut; an ending is only cut if it alone is too long.
    """

    _unit = "choice"

    def __init__(self, folder: str | Path, **options: Unpack[Options]) -> None:
        super().__init__(folder, **options)
        self._cutter, self._reader = EndingCutter(self.tokenizer, self.settings.max_length), QuestionReader()

    def choose(
        self, context: str, endings: Sequence[str], *, batch_size: int | None = None, tokens: int | None = None
    ) -> Chosen:
        """Return the ending that fits `context` best, out of two or more. Raises as `choices` does."""
        check_question("", context, endings)
        return next(self.choices([(context, endings)], batch_size=batch_size, tokens=tokens))

    def choices(
        self,
        questions: Iterable[Question],
        *,
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[Chosen]:
        """Yield the best ending of each (context, endings), in order, while `questions` is being read.

        `window`, `tokens` and `batch_size` (pairs of a context and an ending in one model run) are those of `Classifier.classify`. An int8
        model scales activations over a whole model run: `batch_size=1` makes scores independent of the other endings.

        Raises, after everything before it has been answered: `CompressError` naming an example that is no question, or whose endings are
        not different texts once they are cut, `CheckFailed` for a score that is not finite, and whatever `questions` itself raises.
        """
        check_sizes(batch_size=batch_size, tokens=tokens, window=window)
        return self._choices(self._reader.windows(questions, window), batch_size, tokens)

    def _choices(
        self, windows: Iterator[list[Question]], batch_size: int | None, tokens: int | None
    ) -> Iterator[Chosen]:
        answered = 0
        for read in windows:
            pairs = [(context, ending) for context, endings in read for ending in endings]
            encodings, cut = self._cutter(pairs)
            ends = np.cumsum([len(endings) for _, endings in read])
            shortened = set(np.searchsorted(ends, cut, side="right").tolist())
            rows_cut = np.array(cut_flags(encodings))
            rows_cut[cut] = True
            self._count([bool(part.any()) for part in np.split(rows_cut, ends[:-1])])
            scores = self._scores(encodings, batch_size, tokens)[:, 0]
            for number, ((_, endings), logits) in enumerate(zip(read, np.split(scores, ends[:-1]), strict=True)):
                if number in shortened:
                    self._cutter.check_distinct(f"questions[{answered}]: ", endings)
                if not np.isfinite(logits).all():
                    raise CheckFailed(
                        f"{self.model}: gives a non-finite score for questions[{answered}]; do not use this model"
                    )
                yield choose_ending(endings, logits)
                answered += 1

    def predict(
        self, questions: Iterable[Question], *, batch_size: int | None = None, tokens: int | None = None
    ) -> list[Chosen]:
        """Return a list of what `choices` yields."""
        return list(self.choices(questions, batch_size=batch_size, tokens=tokens))

    def logits(
        self, pairs: Iterable[tuple[str, str]], *, batch_size: int | None = None, tokens: int | None = None
    ) -> np.ndarray:
        """Return float32 [pair, 1]: the scores of pairs of a context and an ending. Only scores with the same context are comparable.
        Raises `CompressError` naming an example that is no pair of texts."""
        check_sizes(batch_size=batch_size, tokens=tokens)
        parts = list[np.ndarray]()
        for window in EndingReader().windows(pairs, MOST):
            encodings, _ = self._cutter([(context, ending) for context, ending in window])
            parts.append(self._scores(encodings, batch_size, tokens))
        return np.concatenate(parts) if parts else np.zeros((0, 1), np.float32)

    def _scores(
        self, encodings: Sequence[tokenizers.Encoding], batch_size: int | None, tokens: int | None
    ) -> np.ndarray:
        outputs = np.zeros((len(encodings), 1), np.float32)
        for chunk, logits in self._runs(encodings, batch_size, tokens):
            outputs[chunk] = logits
        return outputs


def check_question(where: str, context: object, endings: object) -> None:
    """Raise `CompressError`, whose message begins with `where`, unless there is a context with two endings or more."""
    if not isinstance(context, str):
        raise CompressError(f"{where}context: expected a text, found {type(context).__name__}")
    check_unicode(f"{where}context", context)
    if isinstance(endings, (str, bytes)) or not isinstance(endings, Sequence):
        raise CompressError(f"{where}endings: expected texts in a list, found {type(endings).__name__}")
    for index, ending in enumerate(endings):
        if not isinstance(ending, str):
            raise CompressError(f"{where}endings[{index}]: expected a text, found {type(ending).__name__}")
        check_unicode(f"{where}endings[{index}]", ending)
    if len(endings) < 2:
        raise CompressError(f"{where}endings: expected two or more to choose among, found {len(endings)}")
