"""Read texts with their words: found in a string, or given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import CompressError
from .reading import Windowed, check_unicode
from .words import joined_spans, word_spans


class TextWithWords(NamedTuple):
    """A text and the positions of its words: int64 [word, 2], in characters, in order."""

    text: str
    spans: np.ndarray


class WordReader(Windowed[TextWithWords]):
    """Reads strings, whose words are found, or lists of words, whose text joins them by one space."""

    def _checked(self, index: int, example: object) -> TextWithWords:
        if not isinstance(example, (str, list, tuple)):
            raise CompressError(f"texts[{index}]: expected a text or a list of words, found {type(example).__name__}")
        words = [example] if isinstance(example, str) else list(example)
        for position, word in enumerate(words):
            if not isinstance(word, str):
                kind = type(word).__name__
                raise CompressError(f"texts[{index}][{position}]: expected a word of the text, found {kind}")
            check_unicode(f"texts[{index}]", word)
        if isinstance(example, str):
            return TextWithWords(example, word_spans(example))
        if "" in words:
            raise CompressError(f"texts[{index}][{words.index('')}]: expected a word of the text, found an empty one")
        return TextWithWords(" ".join(words), joined_spans(words))

    def _characters(self, example: TextWithWords) -> int:
        return len(example.text)
