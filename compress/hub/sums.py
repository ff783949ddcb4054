"""Whether what was downloaded is what the hub names: its client compares sizes, and not contents."""

from __future__ import annotations

import re
from pathlib import Path

from ..store import hash_file


def drop_damaged(folder: Path) -> str | None:
    """The first large file under a snapshot of the hub's cache whose SHA-256 is not the name that the cache gives it, as the hub
    does; it is removed from the cache. None where all are whole."""
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
