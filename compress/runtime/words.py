"""The words of texts, and the tokens that stand for them; a long text is read in windows of tokens that overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

NOWHERE = -1  # the window and position of a word that no token stands for
_OVERLAP = 4  # a window shares one token in so many with the one before it
_WORD = re.compile(r"\w[\w\u0300-\u036f\u200d]*|[^\w\s]")


def word_spans(text: str) -> np.ndarray:
    """int64 [word, 2]: where the words of `text` begin and end, in characters. A word is a run of letters and digits, or one
    other character that is no space."""
    spans = [match.span() for match in _WORD.finditer(text)]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class Windows:
    """Texts as windows of tokens, text after text. `counts` [text]: windows of each. `window` and `position` [word]: the token that
    stands for a word, of the words of all texts in order; `NOWHERE` where there is none."""

    encodings: list[tokenizers.Encoding]
    counts: np.ndarray
    window: np.ndarray
    position: np.ndarray


class Windower:
    """Cuts texts into windows of at most `max_length` tokens, special ones included, for a copy of `tokenizer`."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_length: int) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        room = max_length - self._tokenizer.num_special_tokens_to_add(False)
        self._tokenizer.enable_truncation(max_length, stride=room // _OVERLAP)

    def __call__(self, texts: Sequence[str], spans: Sequence[np.ndarray]) -> Windows:
        """`spans` of the words of each text, [word, 2], in characters and in order.

        For a word stands the first token that holds one of its characters, in the window where that has most context."""
        encodings: list[tokenizers.Encoding] = []
        counts, places = [], []
        for encoding, words in zip(self._tokenizer.encode_batch(list(texts)), spans, strict=True):
            windows = [encoding, *encoding.overflowing]
            places.append(_places(windows, np.asarray(words).reshape(-1, 2), len(encodings)))
            encodings += windows
            counts.append(len(windows))
        window, position = np.concatenate([np.zeros((2, 0), np.int64), *places], axis=1)
        return Windows(encodings, np.array(counts, np.int64), window, position)


def _places(windows: Sequence[tokenizers.Encoding], words: np.ndarray, first: int) -> np.ndarray:
    """int64 [2, word]: window, counted from `first`, and position."""
    places = np.full((2, len(words)), NOWHERE, np.int64)
    most = np.full(len(words), NOWHERE, np.int64)
    for number, encoding in enumerate(windows):
        begins, ends = number == 0, number == len(windows) - 1
        position, context = _tokens(encoding, words, begins=begins, ends=ends)
        better = context > most
        places[:, better] = np.stack([np.full(len(words), first + number), position])[:, better]
        most[better] = context[better]
    return places


def _tokens(
    encoding: tokenizers.Encoding, words: np.ndarray, *, begins: bool, ends: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Of each word the position of its token in a window, and how many tokens there are to the nearer edge that cuts the text;
    `NOWHERE` where the window has none. `begins`, `ends`: the text does so in this window."""
    offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
    real = np.flatnonzero((offsets[:, 1] > offsets[:, 0]) & (np.array(encoding.special_tokens_mask) == 0))
    if not len(real):
        nowhere = np.full(len(words), NOWHERE, np.int64)
        return nowhere, nowhere
    start, end = offsets[real].T
    found = np.searchsorted(end, words[:, 0], side="right")
    token = np.minimum(found, len(real) - 1)
    inside = (found < len(real)) & (start[token] < words[:, 1])
    if not begins:  # a word that the window before begins: what stands here first is not its first token
        inside &= (token > 0) | (start[token] <= words[:, 0])
    far = len(real)
    context = np.minimum(token if not begins else far, len(real) - 1 - token if not ends else far)
    return np.where(inside, real[token], NOWHERE), np.where(inside, context, NOWHERE)
