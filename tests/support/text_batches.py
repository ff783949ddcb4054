"""Batches of random texts, for models without a tokenizer."""

from __future__ import annotations

from typing import Any

import numpy as np


def batches(seed: int, count: int, vocabulary: int = 120, length: int = 20) -> list[dict[str, Any]]:
    """Return batches of eight texts of different lengths in two segments, as arrays."""
    random = np.random.default_rng(seed)
    arrays = []
    for _ in range(count):
        lengths = np.array([length, *random.integers(4, length, size=7)])
        mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
        ids = random.integers(5, vocabulary, size=(8, length)) * mask
        types = (np.arange(length) > lengths[:, None] // 2).astype(np.int64) * mask
        arrays.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": types})
    return arrays
