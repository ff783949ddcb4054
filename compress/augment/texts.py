"""The distinct texts of a split and their words that may be replaced, numbered through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..tasks import Split
from .words import Span, content_words


@dataclass(frozen=True)
class Texts:
    """Every distinct text once; its words' spans; the number of its first word; and each example's texts by number."""

    texts: list[str]
    spans: list[list[Span]]
    first: np.ndarray
    of_example: list[tuple[int, ...]]

    @property
    def words(self) -> int:
        """In all texts."""
        return int(self.first[-1])

    def words_of_example(self, example: int) -> int:
        """In all columns."""
        return sum(len(self.spans[number]) for number in self.of_example[example])

    def text_of(self, words: np.ndarray) -> np.ndarray:
        """The text that each of these words, by number, is in: int64 [word]."""
        return np.searchsorted(self.first, words, side="right") - 1

    def word(self, number: int, text: int) -> str:
        """Word `number`, which is in `text`, as written."""
        start, end = self.spans[text][number - int(self.first[text])]
        return self.texts[text][start:end]

    def numbers(self, example: int) -> np.ndarray:
        """The numbers of the example's words, column after column, int64 [word]."""
        return np.concatenate([np.arange(self.first[n], self.first[n + 1]) for n in self.of_example[example]])


def words_of(split: Split) -> Texts:
    """The texts of all columns, in the order in which examples show them."""
    numbers: dict[str, int] = {}
    of_example = [
        tuple(numbers.setdefault(text, len(numbers)) for text in row) for row in zip(*split.texts, strict=True)
    ]
    spans = [content_words(text) for text in numbers]
    first = np.cumsum([0, *(len(words) for words in spans)])
    return Texts(list(numbers), spans, first, of_example)
