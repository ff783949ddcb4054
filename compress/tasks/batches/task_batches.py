"""Token ids of a split, and the batches in which models see them. numpy only, deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import tokenizers

from ...errors import CompressError
from ...losses.loss import MeanOver
from ...runtime.batches import chunks
from ...runtime.cutting import Cutter, truncation_side
from ..data import Split
from .choices import encode_choices
from .encoded import ENCODE_AT_ONCE, Encoded, ragged_rows
from .queries import EncodedQueries, QuerySampler
from .spans import encode_spans
from .text_vectors import EncodedTexts
from .words import encode_words

POOL = 64  # batches that are shuffled together before they are sorted by length


def check_room(tokenizer: tokenizers.Tokenizer, max_length: int, *, pair: bool) -> None:
    """Raise `CompressError` if `max_length` tokens leave no room for text after the tokenizer's special tokens."""
    special = tokenizer.num_special_tokens_to_add(pair)
    if max_length <= special:
        raise CompressError(f"max_length is {max_length}; expected more than the {special} special tokens")


def encode(tokenizer: tokenizers.Tokenizer, split: Split, max_length: int) -> Encoded:
    """Return token ids of every example, truncated to `max_length` tokens on the tokenizer's side. In a pair the longer text is truncated
    first; texts that are read separately, each by itself; with a context and an ending, the context. Texts with labelled words or answer
    spans are not truncated but split into windows.

    The given tokenizer is not changed. Raises `CompressError` if `max_length` leaves no room for text.
    """
    check_room(tokenizer, max_length, pair=len(split.texts) == 2 and not split.separate_texts)
    if split.labels_words:
        return encode_words(tokenizer, split, max_length)
    if split.labels_spans:
        return encode_spans(tokenizer, split, max_length)
    if split.has_choices:
        return encode_choices(tokenizer, split, max_length)
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_padding()
    own.enable_truncation(max_length, strategy="longest_first", direction=truncation_side(tokenizer))
    if split.separate_texts:
        return EncodedTexts(*_token_ids(own, [list(chain(*split.texts))]), split.labels)
    return (EncodedQueries if split.ranks_groups else Encoded)(*_token_ids(own, split.texts), split.labels)


def _token_ids(own: tokenizers.Tokenizer, every: Sequence[list[str]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return ids and segments of each row of the one or two columns `every`."""
    cutter = Cutter(own)
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    for start in range(0, len(every[0]), ENCODE_AT_ONCE):
        columns = [column[start : start + ENCODE_AT_ONCE] for column in every]
        texts = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        encodings = cutter.encode(texts)
        lengths = [len(encoding) for encoding in encodings]
        ids += ragged_rows([encoding.ids for encoding in encodings], lengths, np.int32)
        types += ragged_rows([encoding.type_ids for encoding in encodings], lengths, np.int8)
    return ids, types


class BucketSampler:
    """Length-bucketed batches. The order depends only on (seed, epoch), so a resumed run needs only (epoch, position in the list that
    `epoch` returns)."""

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int) -> None:
        if batch_size < 1:
            raise CompressError(f"batch_size is {batch_size}; expected at least 1")
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return index arrays in shuffled order; every example once, with similar lengths in each.

        Sorting within pools of a random order, not over the whole split, keeps batches random.
        """
        rng = np.random.default_rng([self.seed % 2**64, number])
        order = rng.permutation(len(self.lengths))
        pool = self.batch_size * POOL
        batches = []
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            batches += [part[i : i + self.batch_size] for i in range(0, len(part), self.batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))]


def collate(encoded: Encoded, indices: np.ndarray, pad_id: int) -> dict[str, np.ndarray]:
    """Return one batch, padded on the right to its longest example.

    `input_ids`, `attention_mask` and `token_type_ids` are int64 [batch, length]; in addition, `Encoded.targets`.
    """
    shape = (len(indices), int(max(len(encoded.input_ids[i]) for i in indices)))
    ids, mask, types = np.full(shape, pad_id, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, index in enumerate(indices):
        length = len(encoded.input_ids[index])
        ids[row, :length] = encoded.input_ids[index]
        types[row, :length] = encoded.token_type_ids[index]
        mask[row, :length] = 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return inputs | encoded.targets(np.asarray(indices), shape[1])


class TaskBatches:
    """A split's examples for the training loop, in length-bucketed batches, or in batches of whole queries or questions; ids are positions
    in the split."""

    def __init__(self, encoded: Encoded, *, batch_size: int, pad_id: int, seed: int) -> None:
        self.encoded, self.pad_id, self.seed = encoded, pad_id, seed
        self._sampler = (
            QuerySampler(encoded.pairs, batch_size, seed)
            if isinstance(encoded, EncodedQueries)
            else BucketSampler(encoded.lengths, batch_size, seed)
        )
        self._epoch = -1
        self._batches: list[np.ndarray] = []

    def __len__(self) -> int:
        return len(self._sampler)

    def indices(self, step: int) -> np.ndarray:
        epoch, position = divmod(step, len(self._sampler))
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._sampler.epoch(epoch)
        return self._batches[position]

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.encoded.lengths[indices]

    def counts(self, unit: MeanOver, indices: np.ndarray) -> np.ndarray:
        return self.encoded.counts(unit, indices)

    def groups(self, indices: np.ndarray) -> np.ndarray | None:
        return self.encoded.groups(indices)

    def tokens(self) -> np.ndarray:
        """Return the ids that occur in some batch, including padding, as ascending int64."""
        return np.flatnonzero(np.bincount(np.concatenate([*self.encoded.input_ids, [self.pad_id]])))

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        return collate(self.encoded, indices, self.pad_id)


def sorted_chunks(lengths: np.ndarray, tokens: int = 4096, most: int = 64) -> list[np.ndarray]:
    """Return batches for inference, shortest examples first: padded size at most `tokens` (unless one example is longer), at most `most`
    examples; every example once."""
    return list(chunks(lengths, tokens, most))
