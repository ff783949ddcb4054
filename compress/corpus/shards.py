"""Token ids on disk: the format written by `tokenize_corpus`, and reading it without loading it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CompressError
from ..tokenization.special import SpecialIds

NAME = "corpus.json"
FORMAT = 1


def shard_name(number: int) -> str:
    return f"tokens-{number:05d}.bin"


def dtype_for(vocabulary: int) -> np.dtype:
    """Return little-endian uint16 if every id below `vocabulary` fits, else uint32."""
    return np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")


def describe(dtype: np.dtype, vocabulary: int, special: SpecialIds, shards: list[dict[str, int]]) -> dict[str, Any]:
    """Return the contents of `corpus.json`; `tokens` includes the [SEP] after each document."""
    return {
        "format": FORMAT,
        "dtype": dtype.name,
        "vocabulary": vocabulary,
        "tokens": sum(shard["tokens"] for shard in shards),
        "documents": sum(shard["documents"] for shard in shards),
        "special": asdict(special) | {"every": list(special.every)},
        "shards": [shard["tokens"] for shard in shards],
    }


@dataclass(frozen=True)
class TokenShards:
    """The tokens of all documents in order, each followed by [SEP], memory-mapped from disk; `len` counts tokens."""

    arrays: tuple[np.ndarray, ...]
    special: SpecialIds
    vocabulary: int

    @classmethod
    def open(cls, folder: Path) -> TokenShards:
        """Open `folder`. Raises `CompressError` if it does not contain what `tokenize_corpus` writes."""
        try:
            document = json.loads((folder / NAME).read_bytes())
            special = SpecialIds(**document["special"] | {"every": tuple(document["special"]["every"])})
            dtype, counts = np.dtype(document["dtype"]).newbyteorder("<"), document["shards"]
            arrays = tuple(_map(folder / shard_name(i), dtype, count) for i, count in enumerate(counts))
            return cls(arrays, special, document["vocabulary"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CompressError(f"{folder}: is not a tokenised corpus, or is damaged: {error}") from None

    @cached_property
    def starts(self) -> np.ndarray:
        """Position of each shard's first token, and finally the number of all tokens, int64."""
        return np.cumsum([0, *(len(array) for array in self.arrays)], dtype=np.int64)

    @cached_property
    def ends(self) -> np.ndarray:
        """Positions of the [SEP] after documents, int64; the last document may be truncated, without one."""
        offsets = zip(self.starts, self.arrays, strict=False)
        return np.concatenate([start + np.flatnonzero(array == self.special.sep) for start, array in offsets])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def read(self, start: int, count: int) -> np.ndarray:
        """Return `count` consecutive tokens from position `start`, across shards, int64 [token]."""
        parts = []
        shard = int(np.searchsorted(self.starts, start, side="right")) - 1
        while count and shard < len(self.arrays):
            offset = start - int(self.starts[shard])
            part = self.arrays[shard][offset : offset + count]
            parts.append(part)
            start, count, shard = start + len(part), count - len(part), shard + 1
        return np.concatenate(parts, dtype=np.int64) if parts else np.zeros(0, np.int64)


def _map(path: Path, dtype: np.dtype, count: int) -> np.ndarray:
    if path.stat().st_size != count * dtype.itemsize:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes, expected {count * dtype.itemsize}")
    return np.memmap(path, dtype=dtype, mode="r")
