"""Encoded texts -> padded batches of near-equal length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import tokenizers

# Padding included. Of 128 to 4,096, 512 was fastest or within the noise of it (docs/runtime.md): larger batches are padded more
# and leave the cache, smaller ones pay more calls.
TOKENS_PER_RUN = 512
MIN_RUNS = 8  # of a window: with fewer, sorted texts are padded by more than a tenth
MIN_TOKENS_PER_RUN = 128


def tokens_per_run(size: int) -> int:
    """Return `TOKENS_PER_RUN`, or less if a window of `size` tokens would make fewer than `MIN_RUNS` runs."""
    return min(TOKENS_PER_RUN, max(size // MIN_RUNS, MIN_TOKENS_PER_RUN))


def chunks(lengths: np.ndarray, tokens: int, rows: int | None = None) -> Iterator[np.ndarray]:
    """Yield indices in batches, shortest first: padded size at most `tokens` (one example may exceed it), at most `rows`."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or end - start == rows or (end - start + 1) * lengths[order[end]] > tokens
        if full:
            yield order[start:end]
            start = end


def pad_batch(encodings: Sequence[tokenizers.Encoding], inputs: dict[str, type], pad_id: int) -> dict[str, np.ndarray]:
    """Return [rows, length] for each of `inputs` (name -> integer type); `input_ids` padded by `pad_id`, the others by 0."""
    shape = (len(encodings), max(len(encoding) for encoding in encodings))
    batch = {name: np.full(shape, pad_id if name == "input_ids" else 0, dtype) for name, dtype in inputs.items()}
    for row, encoding in enumerate(encodings):
        values = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        values["token_type_ids"] = encoding.type_ids
        for name, array in batch.items():
            array[row, : len(encoding)] = values[name]
    return batch
