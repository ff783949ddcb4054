"""The distinct texts of a split, their replaceable words, numbered consecutively, and the tokens of each word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import tokenizers

from ..tasks import Split
from .words import Span, content_words

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

ENCODE_AT_ONCE = 4096  # texts; bounds the memory of the tokenizer's own objects


@dataclass(frozen=True)
class Texts:
    """Every distinct text once; its words' spans; the number of its first word; and each example's texts by number."""

    texts: list[str]
    spans: list[list[Span]]
    first: np.ndarray
    of_example: list[tuple[int, ...]]

    @property
    def words(self) -> int:
        """Number of words in all texts."""
        return int(self.first[-1])

    def words_of_example(self, example: int) -> int:
        """Return the number of words in all columns."""
        return sum(len(self.spans[number]) for number in self.of_example[example])

    def text_of(self, words: np.ndarray) -> np.ndarray:
        """Return the text of each of these words, given by number: int64 [word]."""
        return np.searchsorted(self.first, words, side="right") - 1

    def word(self, number: int, text: int) -> str:
        """Return word `number`, which is in `text`, as written."""
        start, end = self.spans[text][number - int(self.first[text])]
        return self.texts[text][start:end]

    def numbers(self, example: int) -> np.ndarray:
        """Return the numbers of the example's words, column by column, int64 [word]."""
        return np.concatenate([np.arange(self.first[n], self.first[n + 1]) for n in self.of_example[example]])


def words_of(split: Split) -> Texts:
    """Return the texts of all columns, in the order of the examples."""
    numbers: dict[str, int] = {}
    of_example = [
        tuple(numbers.setdefault(text, len(numbers)) for text in row) for row in zip(*split.texts, strict=True)
    ]
    spans = [content_words(text) for text in numbers]
    first = np.cumsum([0, *(len(words) for words in spans)])
    return Texts(list(numbers), spans, first, of_example)


@dataclass(frozen=True)
class Pieces:
    """int32 token ids of every text with its special tokens; per word the position of its first token and its number of tokens, int64
    [word]. A word that the tokenizer does not treat as one, for instance in the name of a special token, has none."""

    ids: list[np.ndarray]
    position: np.ndarray
    count: np.ndarray


def pieces_of(texts: Texts, tokenizer: Tokenizer) -> Pieces:
    """Return the pieces of all texts, without truncation."""
    ids: list[np.ndarray] = []
    position, count = np.zeros(texts.words, np.int64), np.zeros(texts.words, np.int64)
    for number, encoding in enumerate(_encodings(tokenizer, texts.texts)):
        ids.append(np.array(encoding.ids, np.int32))
        words = slice(texts.first[number], texts.first[number + 1])
        position[words], count[words] = _find(encoding, texts.spans[number])
    return Pieces(ids, position, count)


def _encodings(tokenizer: Tokenizer, texts: list[str]) -> Iterator[Encoding]:
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_padding()
    own.no_truncation()
    for start in range(0, len(texts), ENCODE_AT_ONCE):
        yield from own.encode_batch(texts[start : start + ENCODE_AT_ONCE])


def _find(encoding: Encoding, spans: list[Span]) -> tuple[list[int], list[int]]:
    """Return first positions and counts. A token belongs to the word that it ends in, as it may include the space before."""
    special = encoding.special_tokens_mask
    ends = [0 if special[index] else end for index, (_, end) in enumerate(encoding.offsets)]
    position, count, at = [], [], 0
    for start, end in spans:
        while at < len(ends) and ends[at] <= start:
            at += 1
        position.append(at)
        while at < len(ends) and start < ends[at] <= end:
            at += 1
        count.append(at - position[-1])
    return position, count
