"""Label the words of texts, and find their entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Unpack, get_args

import numpy as np

from ..errors import CheckFailed, CompressError
from .kinds import Entity, Prediction
from .kinds.tagging import OUTSIDE, entities, unread_label, word_outputs
from .model_folder import OpenedModel, Options, check_sizes
from .reading import MOST
from .word_reader import TextWithWords, WordReader
from .words import NOWHERE, Windower, Windows

Aggregation = Literal["first", "average", "max", "none"]
Words = str | Sequence[str]


class LabelledWords(NamedTuple):
    """A text, the positions of its words (int64 [word, 2], in characters, the end exclusive), and each word's label with its
    probability."""

    text: str
    spans: np.ndarray
    labels: list[Prediction]


class Tagger(OpenedModel):
    """A model that labels the words of texts, on the CPU: for entities, parts of speech, chunks. One instance may be used from several
    threads. The options are those of `Classifier`.

    A text is a string, whose words are its runs of letters and digits and each other character; or a list of words, which are joined by one
    space and keep their boundaries. A word gets the most probable label of its first token. A text that is too long for the model is read
    in overlapping windows, and a word is decided in the one where it has most context.
    """

    _unit = "word"

    def __init__(self, folder: str | Path, **options: Unpack[Options]) -> None:
        super().__init__(folder, **options)
        if self.columns == 2:
            raise CompressError(
                f"{self.folder / 'bundle.json'}: text_columns: expected one, whose words get labels, found 2"
            )
        self._windower = Windower(self.tokenizer, self.settings.max_length)
        self._reader = WordReader()

    @property
    def columns(self) -> int | None:
        """Texts per example: 1, even if the folder does not say."""
        return super().columns or 1

    def tag(
        self,
        texts: str | Iterable[Words],
        *,
        aggregation: Aggregation = "first",
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[list[Entity]]:
        """Yield the entities of each text, in order, while `texts` is being read; memory is bounded by the longest text.

        `texts` holds strings, and lists of words; a string may be passed bare. `aggregation`, with the names of transformers' pipeline, is
        how a word is decided: "first" by its first token, as in training and scoring; "average" by the mean of its tokens' probabilities;
        "max" by its most confident token. The words of an entity are then joined: its label is the type, its score the mean. "none" decides
        as "first" does and joins none: each word has the label that the model gives it. Words labelled `O` are left out; if no label is
        called `O`, as for parts of speech, every word is an answer of its own.

        `window`, `tokens` and `batch_size` (windows of a text in one model run) are those of `Classifier.classify`.

        Raises, after everything before it has been answered: `CompressError` naming an example that is no text, `CheckFailed` for a score
        that is not finite, and whatever `texts` itself raises.
        """
        check_aggregation(aggregation)
        labelled = self.label_words(texts, aggregation=aggregation, batch_size=batch_size, tokens=tokens, window=window)
        return (self.entities(each, aggregation=aggregation) for each in labelled)

    def label_words(
        self,
        texts: str | Iterable[Words],
        *,
        aggregation: Aggregation = "first",
        batch_size: int | None = None,
        tokens: int | None = None,
        window: int | None = None,
    ) -> Iterator[LabelledWords]:
        """Yield the label of each word of each text, `O` too, in order, while `texts` is being read. All else is as in `tag`."""
        check_aggregation(aggregation)
        check_sizes(batch_size=batch_size, tokens=tokens, window=window)
        return self._label_words(self._outputs(self._reader.windows(texts, window), batch_size, tokens, aggregation))

    def entities(self, words: LabelledWords, *, aggregation: Aggregation = "first") -> list[Entity]:
        """Return what `tag` yields for a text whose words have these labels."""
        joined = aggregation != "none" and OUTSIDE in self.labels
        return entities(words.text, words.spans, words.labels, joined=joined)

    def predict(
        self,
        texts: str | Iterable[Words],
        *,
        aggregation: Aggregation = "first",
        batch_size: int | None = None,
        tokens: int | None = None,
    ) -> list[list[Entity]]:
        """Return a list of what `tag` yields."""
        return list(self.tag(texts, aggregation=aggregation, batch_size=batch_size, tokens=tokens))

    def words(self, texts: str | Iterable[Words]) -> list[np.ndarray]:
        """Return the positions of the words of each text: int64 [word, 2] in characters, the end exclusive; for a list of words, in the
        text that they form with one space between."""
        return [example.spans for examples in self._reader.windows(texts, MOST) for example in examples]

    def logits(
        self, texts: str | Iterable[Words], *, batch_size: int | None = None, tokens: int | None = None
    ) -> np.ndarray:
        """Return float32 [words, labels], the words of all texts one after another, from batches that depend on the texts alone.

        A word without a token has 10 for `O`, or for the first label if none is called `O`, and 0 for the others. For a model that
        quantizes activations on the fly see `Classifier.logits`.
        """
        check_sizes(batch_size=batch_size, tokens=tokens)
        parts = [outputs for _, outputs in self._outputs(self._reader.windows(texts, MOST), batch_size, tokens)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), np.float32)

    def _outputs(
        self,
        windows: Iterator[list[TextWithWords]],
        batch_size: int | None,
        tokens: int | None,
        aggregation: Aggregation = "first",
    ) -> Iterator[tuple[list[TextWithWords], np.ndarray]]:
        """Yield texts read together, and float32 [word, label] of their words."""
        for examples in windows:
            cut = self._windower([example.text for example in examples], [example.spans for example in examples])
            yield examples, self._words_of(cut, batch_size, tokens, aggregation)

    def _words_of(
        self, cut: Windows, batch_size: int | None, tokens: int | None, aggregation: Aggregation
    ) -> np.ndarray:
        """Return float32 [word, label]. Only one run's token logits are in memory at a time."""
        outputs = cut.places.unread(len(self.labels), unread_label(self.labels))
        windows = np.unique(cut.places.window[cut.places.window != NOWHERE])  # the windows in which words are decided
        for chunk, logits in self._runs([cut.encodings[i] for i in windows], batch_size, tokens):
            if aggregation in ("first", "none"):
                cut.places.put(outputs, windows[chunk], logits)
            else:
                read = cut.places.tokens_in(windows[chunk])
                outputs[read.words] = word_outputs(
                    logits[read.rows, read.positions], read.starts, mean=aggregation == "average"
                )
        return outputs

    def _label_words(self, parts: Iterator[tuple[list[TextWithWords], np.ndarray]]) -> Iterator[LabelledWords]:
        answered = 0
        for examples, outputs in parts:
            start = 0
            for text, spans in examples:
                logits = outputs[start : (start := start + len(spans))]
                if not np.isfinite(logits).all():
                    raise CheckFailed(
                        f"{self.model}: gives a non-finite score for texts[{answered}]; do not use this model"
                    )
                yield LabelledWords(text, spans, list(self.settings.kind.answers(self.labels, logits)))
                answered += 1


def check_aggregation(aggregation: str, where: str = "aggregation") -> None:
    """Raise `CompressError`, whose message begins with `where`, for a name that is not one of `Aggregation`."""
    if aggregation not in get_args(Aggregation):
        *others, last = get_args(Aggregation)
        raise CompressError(
            f"{where}: expected {', '.join(others)} or {last}, found {aggregation!r}; words are decided, not tokens"
        )
