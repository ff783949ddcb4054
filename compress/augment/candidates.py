"""Candidates for the words to replace, from the proposer responsible for each word."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .batching import Slots
from .masked import MaskedLmProposer
from .neighbours import WordProposer
from .texts import Texts, pieces_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Proposers:
    """Sources of candidates: a masked language model for words of one token, another source for the rest.

    Without the first, the second serves all words; without the second, words of several tokens are not replaced.
    """

    masked_lm: MaskedLmProposer | None
    others: WordProposer | None


@dataclass(frozen=True)
class Candidates:
    """int32 [word, candidate], indices into `vocabulary`, best first, padded with -1."""

    table: np.ndarray
    vocabulary: tuple[str, ...]

    def pick(self, word: int, share: float) -> str | None:
        """Return the candidate of word number `word` at the fraction `share` (0 to 1) of its list; None if it has none."""
        row = self.table[word]
        count = int((row >= 0).sum())
        return self.vocabulary[row[int(share * count)]] if count else None


def find_candidates(
    texts: Texts,
    needed: np.ndarray,
    tokenizer: Tokenizer,
    proposers: Proposers,
    count: int,
    *,
    work: Path | None,
    on_progress: Callable[[int, int], None],
) -> Candidates:
    """Return candidates for the words that are `needed` (bool [word]); other words have none.

    Texts are tokenized with the masked language model's tokenizer, or with `tokenizer` if there is none.
    """
    model, others = proposers.masked_lm, proposers.others
    if model is None:
        slots, single, several = sort_words(texts, needed, tokenizer, 0)
    else:
        slots, single, several = sort_words(texts, needed, model.tokenizer, model.max_length)
    table = np.full((texts.words, count), -1, np.int32)
    vocabulary: tuple[str, ...] = ()
    if model is not None and len(single):
        table[single] = model.propose(slots, count, work, on_progress)
        vocabulary = model.vocabulary
    if others is not None and len(several):
        words = _words_as_written(texts, several)
        rows = {word: row for row, word in enumerate(dict.fromkeys(words))}
        proposals = others.propose(list(rows), count)[[rows[word] for word in words]]
        table[several] = np.where(proposals >= 0, proposals + len(vocabulary), -1)
        vocabulary += others.vocabulary
    return Candidates(table, vocabulary)


def sort_words(
    texts: Texts, needed: np.ndarray, tokenizer: Tokenizer, length: int
) -> tuple[Slots, np.ndarray, np.ndarray]:
    """Return the needed words of one token as slots, with their numbers; and the numbers of the other needed words.

    `length`: tokens that the masked language model takes. Texts are truncated to it; a word beyond it is one of the others.
    """
    pieces = pieces_of(texts, tokenizer)
    fits = (pieces.count == 1) & (pieces.position < length - 1)  # the last is a special token
    single = np.flatnonzero(needed & fits)
    used, text = np.unique(texts.text_of(single), return_inverse=True)
    ids = [_truncate_ids(pieces.ids[number], length) for number in used]
    slots = Slots(ids, text.astype(np.int64), pieces.position[single], _words_as_written(texts, single))
    return slots, single, np.flatnonzero(needed & ~fits & (pieces.count > 0))


def _words_as_written(texts: Texts, numbers: np.ndarray) -> list[str]:
    """Return the words with these numbers, one string object for each distinct one."""
    owners = texts.text_of(numbers)
    return [sys.intern(texts.word(number, owner)) for number, owner in zip(numbers, owners, strict=True)]


def _truncate_ids(ids: np.ndarray, length: int) -> np.ndarray:
    """Return at most `length` of the ids, keeping the last special token."""
    return ids if len(ids) <= length else np.append(ids[: length - 1], ids[-1])
