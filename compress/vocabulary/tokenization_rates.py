"""Compare the tokens of texts before and after: how often each token occurs, and how many texts are tokenized alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import tokenizers

from ..results.vocabulary import TextRates
from ..tasks import Split, encode
from ..tokenization.documents import parts_of
from .algorithms import algorithm_of

_WHOLE = 1 << 20  # tokens; no text is truncated


@dataclass(frozen=True)
class TextCounts:
    """Numbers of `texts`, and of those with the `same` tokens before and after; of all `tokens` and `unknown` ones, before and after."""

    texts: int = 0
    same: int = 0
    tokens: int = 0
    unknown: int = 0
    tokens_after: int = 0
    unknown_after: int = 0

    @property
    def rates(self) -> TextRates:
        shares = (self.unknown / max(1, self.tokens), self.unknown_after / max(1, self.tokens_after))
        return TextRates(texts=self.texts, same=self.same, unknown=shares[0], unknown_after=shares[1])

    def __add__(self, other: TextCounts) -> TextCounts:
        return TextCounts(**{name: value + asdict(other)[name] for name, value in asdict(self).items()})


def count_tokens(tokenizer: tokenizers.Tokenizer, split: Split) -> np.ndarray:
    """Return how often each token occurs in whole texts as a model reads them, int64 [vocabulary]."""
    return _count_ids(encode(tokenizer, split, _WHOLE).input_ids, _size(tokenizer))


def count_texts(tokenizer: tokenizers.Tokenizer, blocks: Iterable[Sequence[str]]) -> np.ndarray:
    """Like `count_tokens`, for plain texts, a block at a time."""
    size = _size(tokenizer)
    counts = np.zeros(size, np.int64)
    for rows in _encode_plain(tokenizer, blocks):
        counts += _count_ids(rows, size)
    return counts


def compare_splits(before: tokenizers.Tokenizer, after: tokenizers.Tokenizer, split: Split) -> TextCounts:
    """Compare whole texts as a model reads them; a pair, or a query and a passage, is one text."""
    pair = _Pair(before, after)
    return pair.compare(*(encode(tokenizer, split, _WHOLE).input_ids for tokenizer in (before, after)))


def compare_texts(
    before: tokenizers.Tokenizer, after: tokenizers.Tokenizer, blocks: Iterable[Sequence[str]]
) -> TextCounts:
    """Compare plain texts, a block at a time."""
    pair = _Pair(before, after)
    counts = TextCounts()
    for block in blocks:
        counts += pair.compare(*(next(_encode_plain(tokenizer, [block])) for tokenizer in (before, after)))
    return counts


class _Pair:
    """A tokenizer, and one with some of its tokens."""

    def __init__(self, before: tokenizers.Tokenizer, after: tokenizers.Tokenizer) -> None:
        self._unknown = tuple(map(_unknown, (before, after)))
        tokens = sorted(after.get_vocab().items(), key=lambda item: item[1])
        self._before = np.array([before.token_to_id(token) for token, _ in tokens], dtype=np.int64)

    def compare(self, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> TextCounts:
        """Compare the same texts in the tokens of both."""
        same = sum(np.array_equal(old, self._before[new]) for old, new in zip(before, after, strict=True))
        return TextCounts(len(before), same, *self._count_tokens(before, 0), *self._count_tokens(after, 1))

    def _count_tokens(self, rows: Sequence[np.ndarray], which: int) -> tuple[int, int]:
        """Return the number of tokens, and how many of them are unknown."""
        ids = _concatenate_rows(rows)
        return len(ids), int((ids == self._unknown[which]).sum())


def _unknown(tokenizer: tokenizers.Tokenizer) -> int:
    """Return the id of the unknown token; -1 if there is none."""
    token = algorithm_of(tokenizer).unknown(parts_of(tokenizer)["model"])
    number = None if token is None else tokenizer.token_to_id(token)
    return -1 if number is None else number


def _encode_plain(tokenizer: tokenizers.Tokenizer, blocks: Iterable[Sequence[str]]) -> Iterator[list[np.ndarray]]:
    """Yield the token ids of each block's texts, without special tokens around them."""
    for block in blocks:
        encodings = tokenizer.encode_batch_fast([*block], add_special_tokens=False)
        yield [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


def _size(tokenizer: tokenizers.Tokenizer) -> int:
    return max(tokenizer.get_vocab().values()) + 1


def _count_ids(rows: Sequence[np.ndarray], size: int) -> np.ndarray:
    return np.bincount(_concatenate_rows(rows), minlength=size)


def _concatenate_rows(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *rows])
