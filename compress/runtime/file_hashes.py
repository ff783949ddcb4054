"""SHA-256 of files, cached in the user's cache folder so that an unchanged file is read once. A cache folder that cannot be read or written
is no failure."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from ..files.atomic import write_text
from ..files.regular import open_regular

Stamp = dict[str, int]

# A file written more recently may be written again within one tick of the file system's clock, without a change of its times.
SETTLED_SECONDS = 2.0


def file_sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file. One that has not changed since it was hashed is not read again. Raises `OSError`, and
    `CompressError` for what is no file."""
    with open_regular(path, "a file") as file:
        key = stamp(file.fileno())
        kept = _read(key)
        if kept is not None:
            return kept
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        changed = max(key["mtime"], key["ctime"]) / 1e9
        if stamp(file.fileno()) == key and time.time() - changed > SETTLED_SECONDS:
            _write(key, digest)
        return digest


def stamp(file: Path | int) -> Stamp:
    """Return what changes when a file, given by its path or descriptor, is written or replaced. Raises `OSError`."""
    status = os.stat(file)  # noqa: PTH116 (also takes a descriptor)
    return {
        "device": status.st_dev,
        "inode": status.st_ino,
        "bytes": status.st_size,
        "mtime": status.st_mtime_ns,
        "ctime": status.st_ctime_ns,
    }


def cache_folder() -> Path | None:
    """Return `bert-compress/file-hashes` under XDG_CACHE_HOME or ~/.cache; None if there is no home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # the specification of these folders requires to ignore relative paths
        try:
            cache = Path.home() / ".cache"
        except RuntimeError:
            return None
    return cache / "bert-compress" / "file-hashes"


def _read(key: Stamp) -> str | None:
    path = _path(key)
    try:
        document = json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("for") != key:
        return None
    digest = document.get("sha256")
    return digest if isinstance(digest, str) and len(digest) == 64 else None


def _write(key: Stamp, digest: str) -> None:
    """Write the hash, whole or not at all."""
    path = _path(key)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"sha256": digest, "for": key}, indent=1))


def _path(key: Stamp) -> Path | None:
    folder = cache_folder()
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    return folder / f"{name}.json" if folder else None
