"""The words of a text: which may be replaced, and which of a tokenizer's tokens may replace them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from tokenizers import Tokenizer, pre_tokenizers

from ..tokenization.word_starts import UNSPACED, decode_token, word_mark

# Words that carry a sentence's structure (and its negations): replacing one changes the meaning or breaks the sentence.
_FUNCTION_WORDS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves one oneself this that these those who whom whose which what
a an the some any each every either neither both all few many much more most several such other another own same
no not nor none never nothing nobody nowhere without cannot
be am is are was were been being have has had having do does did doing done will would shall should can could may
might must ought
about above across after against along among around as at before behind below beneath beside between beyond by down
during except for from in inside into near of off on onto out outside over past per since than through throughout to
toward towards under until up upon via with within
and but or so yet if because although though unless while whereas whether when where why how
here there then now again once further also just only too very even still
d ll m re s t ve don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn mustn needn ain
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_SPLIT = pre_tokenizers.BertPreTokenizer()

Span = tuple[int, int]
SPARE = 3  # most forms of a word in a vocabulary that differ in case: word, Word, WORD
NONE = -1


def is_content_word(word: str) -> bool:
    """Whether it is letters alone, two or more, of a script with spaces between words, and not a function word."""
    return len(word) > 1 and word.isalpha() and word.lower() not in FUNCTION_WORDS and not UNSPACED.search(word)


def content_words(text: str) -> list[Span]:
    """Return (start, end) in characters of the words of `text` that may be replaced, in order.

    Text is split at spaces and punctuation as by BERT. Numbers, punctuation and function words are left out, as in the official code; so
    are single letters.
    """
    return [span for word, span in _SPLIT.pre_tokenize_str(text) if is_content_word(word)]


def match_case(word: str, like: str) -> str:
    """Return `word` in capitals, or with a capital first letter, if `like` is; otherwise unchanged."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[0].upper() + word[1:] if like[0].isupper() else word


def whole_words(tokenizer: Tokenizer) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the content words that are one token each, in order of their ids; and their ids, int64 [word]."""
    mark = word_mark(tokenizer)
    pairs = sorted((id_, token) for token, id_ in tokenizer.get_vocab().items() if token.startswith(mark))
    words = [(id_, decode_token(token[len(mark) :], mark)) for id_, token in pairs]
    kept = [(id_, word) for id_, word in words if is_content_word(word)]
    return tuple(word for _, word in kept), np.array([id_ for id_, _ in kept], np.int64)


def fold_numbers(words: Iterable[str]) -> dict[str, int]:
    """Return a number for every word, the same for words that differ only in case."""
    numbers: dict[str, int] = {}
    for word in words:
        numbers.setdefault(word.casefold(), len(numbers))
    return numbers


def case_folded_ids(words: Sequence[str], numbers: dict[str, int] | None = None) -> np.ndarray:
    """Return int32 [word]: the words' numbers in `numbers` (default: in their own), -1 for a word without one."""
    known = fold_numbers(words) if numbers is None else numbers
    return np.array([known.get(word.casefold(), -1) for word in words], np.int32)


def exclude_own_word(ranked: np.ndarray, fold: np.ndarray, own: np.ndarray, count: int) -> np.ndarray:
    """Return the first `count` of every row of `ranked` (int32 [row, more], -1 for none), excluding the row's own word in any case.

    `fold` (int32 [word]) numbers words ignoring case, `own` (int32 [row]) is the number of the word to be replaced. int32 [row, count],
    padded with -1.
    """
    kept = (ranked >= 0) & (fold[ranked] != own[:, None])
    order = np.argsort(~kept, axis=1, kind="stable")[:, :count]
    chosen = np.where(np.take_along_axis(kept, order, 1), np.take_along_axis(ranked, order, 1), NONE)
    missing = count - chosen.shape[1]
    return np.pad(chosen, ((0, 0), (0, missing)), constant_values=NONE).astype(np.int32)
