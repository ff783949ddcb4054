"""The words of texts, and the tokens that represent them; a long text is read in overlapping windows of tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import tokenizers

NOWHERE = -1  # the window and position of a word without a token
UNREAD = 10.0  # the logit of such a word's label, 0 for others: as good as certain
_OVERLAP = 4  # a window shares a quarter of its tokens with the one before it
_INSIDE = "\u00ad\u200c\u200d"  # the soft hyphen and the joiners, which occur inside words
_PLANES = range(0x1F000)  # of Unicode: beyond are no marks and no controls but tags and variation selectors


@cache
def _word_pattern() -> re.Pattern[str]:
    """Python's \\w has letters and digits, but not the marks that most scripts of India write vowels with."""
    kinds = [(chr(code), unicodedata.category(chr(code))) for code in _PLANES]
    marks = "".join(character for character, kind in kinds if kind[0] == "M")
    unseen = re.escape("".join(character for character, kind in kinds if kind in ("Cc", "Cf")))
    return re.compile(rf"\w[\w{marks}{_INSIDE}]*|[^\w\s{unseen}][{marks}]*")


def word_spans(text: str) -> np.ndarray:
    """Return int64 [word, 2]: where the words of `text` begin and end, in characters. A word is a run of letters and digits, or one other
    character; either with its accents and marks, and without spaces or control characters."""
    spans = [match.span() for match in _word_pattern().finditer(text)]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def joined_spans(words: Sequence[str]) -> np.ndarray:
    """Return int64 [word, 2]: the positions of words in the text that they form with one space between."""
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    ends = sizes.cumsum() + np.arange(len(words))
    return np.stack([ends - sizes, ends], axis=1)


@dataclass(frozen=True)
class Places:
    """The first token of each word of some texts, in order: its `window` and its `position` there, int64 [word], and the position of the
    word's `last` token in that window; `NOWHERE` if there is none."""

    window: np.ndarray
    position: np.ndarray
    last: np.ndarray

    @cached_property
    def _by_window(self) -> tuple[np.ndarray, np.ndarray]:
        """The words that have a token, window by window, and their windows."""
        known = np.flatnonzero(self.window != NOWHERE)
        known = known[np.argsort(self.window[known], kind="stable")]
        return known, self.window[known]

    def words_in(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of these windows, window by window, and for each word the index of its window in `windows`."""
        words, their = self._by_window
        first, end = (np.searchsorted(their, windows, side=side) for side in ("left", "right"))
        inside = [words[start:stop] for start, stop in zip(first, end, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *inside]), np.repeat(np.arange(len(windows)), end - first)

    def concat(self, other: Places, windows: int) -> Places:
        """Return the words of both; the windows of `other` come after the first `windows`."""
        window = np.where(other.window == NOWHERE, NOWHERE, other.window + windows)
        pairs = ((self.window, window), (self.position, other.position), (self.last, other.last))
        return Places(*map(np.concatenate, pairs))

    def unread(self, labels: int, label: int) -> np.ndarray:
        """Return float32 [word, labels], with `UNREAD` at `label` for words without a token; the others are filled by `put`."""
        outputs = np.zeros((len(self.window), labels), np.float32)
        outputs[self.window == NOWHERE, label] = UNREAD
        return outputs

    def put(self, outputs: np.ndarray, windows: np.ndarray, logits: np.ndarray) -> None:
        """Write a model's outputs for these windows, [window, length, label], into the `outputs` of words."""
        words, rows = self.words_in(windows)
        outputs[words] = logits[rows, self.position[words]]

    def tokens_in(self, windows: np.ndarray) -> WordTokens:
        """Return every token of the words of these windows, as in `words_in`."""
        words, rows = self.words_in(windows)
        sizes = self.last[words] - self.position[words] + 1
        starts = np.cumsum(sizes) - sizes
        within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
        return WordTokens(words, np.repeat(rows, sizes), np.repeat(self.position[words], sizes) + within, starts)


class WordTokens(NamedTuple):
    """`words`: which ones, [word]; `rows` and `positions` [token]: the index of each token's window, and its position there, word by word;
    `starts` [word]: where a word's tokens begin in these two."""

    words: np.ndarray
    rows: np.ndarray
    positions: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True)
class Windows:
    """Texts as windows of tokens, text after text, and the `places` of their words."""

    encodings: list[tokenizers.Encoding]
    places: Places


class Windower:
    """Cuts texts into windows of at most `max_length` tokens, special ones included, for a copy of `tokenizer`."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_length: int) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        room = max_length - self._tokenizer.num_special_tokens_to_add(False)
        # At least one, so that a window's first token is in the one before it.
        stride = min(max(room // _OVERLAP, 1), room - 1)
        self._tokenizer.enable_truncation(max_length, stride=stride)

    def __call__(self, texts: Sequence[str], spans: Sequence[np.ndarray]) -> Windows:
        """Return the windows of texts; `spans`: the words of each text, [word, 2], in characters and in order.

        A word is represented by the first token that has one of its characters, in the window where that token has most context.
        """
        encodings: list[tokenizers.Encoding] = []
        places = [np.zeros((3, 0), np.int64)]
        for encoding, words in zip(self._tokenizer.encode_batch(list(texts)), spans, strict=True):
            windows = [encoding, *encoding.overflowing]
            places.append(_token_places(windows, np.asarray(words).reshape(-1, 2), len(encodings)))
            encodings += windows
        return Windows(encodings, Places(*np.concatenate(places, axis=1)))


def _token_places(windows: Sequence[tokenizers.Encoding], words: np.ndarray, first: int) -> np.ndarray:
    """Return int64 [3, word]: window, counted from `first`, position, and that of the last token."""
    places = np.full((3, len(words)), NOWHERE, np.int64)
    most = np.full(len(words), NOWHERE, np.int64)
    for number, encoding in enumerate(windows):
        near = _words_near(encoding, words, begins=number == 0, ends=number == len(windows) - 1)
        # Of equals the earlier one, which has the word's first token.
        better = np.flatnonzero(near.context > most[near.words])
        places[0, near.words][better] = first + number
        places[1, near.words][better], places[2, near.words][better] = near.position[better], near.last[better]
        most[near.words][better] = near.context[better]
    return places


class _WordsNear(NamedTuple):
    """The `words` that a window may contain; for each the `position` of its first token and of its `last`, and how many tokens of `context`
    there are from the first to the nearer edge that cuts the text; `NOWHERE` if the window does not have it."""

    words: slice
    position: np.ndarray
    last: np.ndarray
    context: np.ndarray


def _words_near(encoding: tokenizers.Encoding, words: np.ndarray, *, begins: bool, ends: bool) -> _WordsNear:
    """`begins`, `ends`: the text does so in this window."""
    offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
    real = np.flatnonzero((offsets[:, 1] > offsets[:, 0]) & (np.array(encoding.special_tokens_mask) == 0))
    if not len(real):
        return _WordsNear(slice(0), real, real, real)
    start, end = offsets[real].T
    near = slice(*_words_between(words, int(start[0]), int(end[-1])))
    word_start, word_end = words[near].T
    token = np.searchsorted(end, word_start, side="right")
    inside = start[token] < word_end
    last = np.maximum(np.searchsorted(start, word_end, side="left") - 1, token)
    far = len(real)
    context = np.minimum(token if not begins else far, far - 1 - token if not ends else far)
    position, last, context = (np.where(inside, each, NOWHERE) for each in (real[token], real[last], context))
    return _WordsNear(near, position, last, context)


def _words_between(words: np.ndarray, start: int, end: int) -> tuple[int, int]:
    """Return the first word with characters from `start` to `end`, and the end of those words."""
    return int(np.searchsorted(words[:, 1], start, "right")), int(np.searchsorted(words[:, 0], end, "left"))
