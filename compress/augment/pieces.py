"""Where the tokenizer's tokens of each word are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import tokenizers

from .texts import Texts
from .words import Span

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

ENCODE_AT_ONCE = 4096  # texts; bounds the memory that the tokenizer's own objects take


@dataclass(frozen=True)
class Pieces:
    """int32 token ids of every text with its special tokens; per word the position of its first token and the number
    of its tokens, int64 [word]. A word that the tokenizer does not see as one, in the name of a special token for
    instance, has none."""

    ids: list[np.ndarray]
    position: np.ndarray
    count: np.ndarray


def pieces_of(texts: Texts, tokenizer: Tokenizer) -> Pieces:
    """Of all texts, whole."""
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
    """First positions and counts. A token is a word's when it ends in it: the first may hold the space before."""
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
