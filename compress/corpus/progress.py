"""The shards written so far, saved so that work can resume after a kill at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..files.atomic import write_bytes, write_text
from ..store.hashing import canonical
from .shards import shard_name

_STATE = "progress.json"


@dataclass
class Progress:
    """Shards in `work`, and the number of text blocks in them; tokens not yet written are in memory.

    Only shards listed in `progress.json` count; one is listed once it is completely on disk.
    """

    work: Path
    identity: str
    dtype: np.dtype
    sep: int
    shards: list[dict[str, int]] = field(default_factory=list)
    blocks: int = 0
    tokens: int = 0
    documents: int = 0
    pending: int = 0
    last: int = -1
    _parts: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def resume(cls, work: Path, inputs: list[Any], dtype: np.dtype, sep: int) -> Progress:
        """Return the progress in `work` if it was made from the same input, else an empty one."""
        work.mkdir(parents=True, exist_ok=True)
        own = cls(work, hashlib.sha256(canonical(inputs)).hexdigest(), dtype, sep, last=sep)
        try:
            state = json.loads((work / _STATE).read_bytes())
            same = state["identity"] == own.identity
            counts = [shard["tokens"] for shard in state["shards"]]
            whole = all((work / shard_name(i)).stat().st_size == n * dtype.itemsize for i, n in enumerate(counts))
        except (OSError, ValueError, KeyError, TypeError):
            return own
        if same and whole and counts:
            own.shards, own.blocks, own.tokens = state["shards"], state["blocks"], sum(counts)
            own.documents = sum(shard["documents"] for shard in own.shards)
            own.last = int(np.fromfile(work / shard_name(len(counts) - 1), dtype)[-1])
        return own

    def add(self, ids: np.ndarray, limit: float) -> None:
        """Add the ids of the next block, up to `limit` tokens in total; a document without tokens leaves no [SEP]."""
        self.blocks += 1
        before = np.concatenate([np.array([self.last], ids.dtype), ids[:-1]])
        ids = ids[~((ids == self.sep) & (before == self.sep))]
        ids = ids[: int(min(len(ids), limit - self.tokens))]
        if len(ids):
            self.last = int(ids[-1])
            self._parts.append(ids)
            self.tokens += len(ids)
            self.pending += len(ids)
            self.documents += int(np.count_nonzero(ids == self.sep))

    def write_shard(self) -> None:
        """Write the tokens in memory as the next shard."""
        if not self.pending:
            return
        ids = np.concatenate(self._parts)
        write_bytes(self.work / shard_name(len(self.shards)), ids.tobytes())
        self.shards.append({"tokens": len(ids), "documents": int(np.count_nonzero(ids == self.sep))})
        self._parts, self.pending = [], 0
        state = {"identity": self.identity, "shards": self.shards, "blocks": self.blocks}
        write_text(self.work / _STATE, json.dumps(state))

    def place(self, out: Path) -> None:
        """Put the shards into `out`, by hard link if possible, so that `work` stays complete until it is removed."""
        out.mkdir(parents=True, exist_ok=True)
        for number in range(len(self.shards)):
            name = shard_name(number)
            (out / name).unlink(missing_ok=True)
            try:
                os.link(self.work / name, out / name)
            except OSError:
                shutil.copyfile(self.work / name, out / name)
