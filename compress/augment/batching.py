"""Which words of which texts are masked in one forward, and batches of forwards. numpy only, deterministic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..tasks import sorted_chunks

MASKED_SHARE = 0.15  # of a text's tokens in one forward, as in the training of masked language models


@dataclass(frozen=True)
class Slots:
    """Words of one token in their texts, ordered by text.

    `texts`: int32 ids of every text, special tokens included. Per word: `text`, the number of its text, and `position`, that of its token
    in it, int64 [word]; `words`, as written.
    """

    texts: list[np.ndarray]
    text: np.ndarray
    position: np.ndarray
    words: list[str]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def tokens(self) -> np.ndarray:
        """The words' own ids, int64 [word]."""
        pairs = zip(self.text.tolist(), self.position.tolist(), strict=True)
        return np.array([self.texts[text][position] for text, position in pairs], np.int64)


@dataclass(frozen=True)
class Batch:
    """The rows of one forward: the text of each row, int64 [row]; the masked slots in row order, and the row of each, int64 [slot]."""

    texts: np.ndarray
    slots: np.ndarray
    row: np.ndarray

    def inputs(self, slots: Slots, *, mask_id: int, pad_id: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the model's inputs, int64 [row, length]; and where words are masked, bool [row, length]."""
        lengths = np.array([len(slots.texts[text]) for text in self.texts])
        shape = (len(self.texts), int(lengths.max()))
        ids, masked = np.full(shape, pad_id, np.int64), np.zeros(shape, bool)
        for row, text in enumerate(self.texts):
            ids[row, : lengths[row]] = slots.texts[text]
        masked[self.row, slots.position[self.slots]] = True
        ids[masked] = mask_id
        real = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)
        return {"input_ids": ids, "attention_mask": real, "token_type_ids": np.zeros(shape, np.int64)}, masked


def batches_of(slots: Slots, tokens: int) -> list[Batch]:
    """Return batches with every word once, in rows of similar length, with padded size at most `tokens` unless there is only one row."""
    rows = _mask_groups(slots)
    lengths = np.array([len(slots.texts[text]) for text, _ in rows], np.int64)
    batches = []
    for chunk in sorted_chunks(lengths, tokens, most=tokens):
        groups = [rows[index][1] for index in chunk]
        row = np.repeat(np.arange(len(chunk)), [len(group) for group in groups])
        batches.append(Batch(np.array([rows[index][0] for index in chunk]), np.concatenate(groups), row))
    return batches


def _mask_groups(slots: Slots) -> list[tuple[int, np.ndarray]]:
    """Return (text, its slots that are masked together): disjoint groups, each spread over the text."""
    rows = []
    starts = np.flatnonzero(np.diff(slots.text, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(slots)], strict=True):
        text = int(slots.text[start])
        at_once = max(1, math.ceil(MASKED_SHARE * (len(slots.texts[text]) - 2)))
        groups = math.ceil((end - start) / at_once)
        rows += [(text, np.arange(start + group, end, groups)) for group in range(groups)]
    return rows
