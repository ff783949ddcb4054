"""Check downloads against the hub's hashes: its client compares sizes, and not contents."""

from __future__ import annotations

import re
from pathlib import Path

from ..store import hash_file


def drop_damaged(folder: Path) -> str | None:
    """Remove from the cache the first large file under a snapshot whose SHA-256 is not its name in the cache, and return a message on it.
    None if all are intact."""
    for path in filter(Path.is_symlink, sorted(folder.rglob("*"))):
        blob = path.parent / path.readlink()
        if re.fullmatch(r"[0-9a-f]{64}", blob.name) and hash_file(blob) != blob.name:
            path.unlink()
            blob.unlink()
            return (
                f"{path.relative_to(folder)} is damaged: its SHA-256 is not the one that the hub names; it is removed from the "
                "cache, and the same command fetches it again"
            )
    return None
