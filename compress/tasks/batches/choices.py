"""Token ids of pairs of a context and an ending, in batches with all endings of a question, and scores back to questions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import tokenizers

from ...metrics.ranks import queries_of
from ...runtime.endings import EndingCutter
from ...runtime.passages import NO_SCORE
from ..data import Split
from ..kinds.choice import places_of, right_places
from .encoded import ENCODE_AT_ONCE, Encoded, ragged_rows
from .queries import EncodedQueries, renumbered_after


@dataclass(frozen=True)
class EncodedChoices(EncodedQueries):
    """Rows are pairs of a context and an ending; `labels` int64 [question]: index of the right one. `right` int64 [pair, 2]: 1 for the
    right ending, else 0, and the number of the question."""

    right: np.ndarray

    @property
    def pairs(self) -> np.ndarray:
        return self.right

    def collected(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return float32 [question, ending] from pairs and their scores [pair, 1], in any order; `NO_SCORE` where a question has no such
        ending."""
        question, ending = places_of(self.right)
        shape = question.max(initial=-1) + 1, ending.max(initial=-1) + 1
        outputs = np.full(shape, NO_SCORE, np.float32)
        for rows, scores in parts:
            outputs[question[rows], ending[rows]] = scores[:, 0]
        return outputs

    def by_row(self, outputs: np.ndarray) -> np.ndarray:
        """Return [pair, 1] from outputs as returned by `collected`."""
        return outputs[places_of(self.right)][:, None]

    def take(self, indices: np.ndarray) -> EncodedChoices:
        """Return only these pairs, in this order."""
        return choices(*self._rows(indices), self.right[indices])

    def concat(self, other: Encoded) -> EncodedChoices:
        if not isinstance(other, EncodedChoices):
            raise TypeError("questions with endings are followed by such questions")
        ids, types, _ = self._joined(other)
        return choices(ids, types, np.concatenate([self.right, renumbered_after(self.right, other.right)]))


def choices(ids: list[np.ndarray], types: list[np.ndarray], right: np.ndarray) -> EncodedChoices:
    """Build `EncodedChoices` from the tokens of pairs, and `right` as documented there."""
    return EncodedChoices(ids, types, right_places(right), right)


def encode_choices(tokenizer: tokenizers.Tokenizer, split: Split, max_length: int) -> EncodedChoices:
    """Return every pair in at most `max_length` tokens, truncating the context first. The given tokenizer is not changed.

    Raises `CompressError` if truncation would make two different endings of a question the same tokens.
    """
    cutter = EndingCutter(tokenizer, max_length)
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    shortened: set[int] = set()
    for start in range(0, len(split), ENCODE_AT_ONCE):
        part = slice(start, start + ENCODE_AT_ONCE)
        encodings, cut = cutter([*zip(split.texts[0][part], split.texts[1][part], strict=True)])
        shortened.update(start + row for row in cut)
        lengths = [len(encoding) for encoding in encodings]
        ids += ragged_rows([encoding.ids for encoding in encodings], lengths, np.int32)
        types += ragged_rows([encoding.type_ids for encoding in encodings], lengths, np.int8)
    for rows in queries_of(split.labels) if shortened else []:
        if shortened.intersection(rows.tolist()):
            cutter.check_distinct(f"max_length is {max_length}: ", [split.texts[1][row] for row in rows])
    return choices(ids, types, split.labels)
