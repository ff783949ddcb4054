"""Keys of artefacts, and hashes of files from outside the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import CompressError
from ..files.regular import check_regular

FORMAT = 1
KEY_LENGTH = 32


def canonical(document: Any) -> bytes:
    """JSON with one spelling: sorted keys, no spaces, UTF-8; NaN and unknown types are refused."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def key(kind: str, version: int, spec: dict[str, Any], inputs: dict[str, str], libraries: dict[str, str]) -> str:
    """Return the key of the artefact that stage `kind`, at code `version`, makes from `inputs`: 32 hex digits.

    `inputs` holds *keys* of upstream artefacts (content hashes only for files from outside), so every key of a plan is known before
    anything runs: a plan can say what is cached, and an upstream artefact that was rebuilt (training is not bit-identical across machines)
    does not invalidate what was made from it. `libraries`: the versions that change the outcome.
    """
    document = {
        "format": FORMAT,
        "kind": kind,
        "version": version,
        "spec": spec,
        "inputs": inputs,
        "libraries": libraries,
    }
    return hashlib.sha256(canonical(document)).hexdigest()[:KEY_LENGTH]


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file, read in chunks; `OSError`, which names the file, passes through."""
    with naming(path), path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an `OSError` name `path`: that of a failed read names no file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def sha256_all(paths: Iterable[Path]) -> list[str]:
    """Return the hex SHA-256 of many files, hashed on threads: hashing releases the GIL."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(sha256, paths))


def hash_file(path: Path) -> str:
    """Return the hex SHA-256 of a user's file. Raises `CompressError` when it cannot be read."""
    check_regular(path, "a file")
    try:
        return sha256(path)
    except FileNotFoundError:
        raise CompressError(f"{path}: no such file") from None
    except OSError as error:
        raise CompressError(f"{path}: cannot be read: {error.strerror}; expected a readable file") from None


def hash_folder(path: Path) -> str:
    """Return the hex SHA-256 of a user's folder: relative names and contents of its files.

    Links to files are followed (the hub's cache is made of them). Names that start with a dot are left out: they are other tools' records.
    Raises `CompressError` when something cannot be read.
    """
    if not path.is_dir():
        raise CompressError(f"{path}: expected a folder, found {'a file' if path.exists() else 'nothing'}")
    names = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    kept = sorted(name for name in names if not any(part.startswith(".") for part in name.split("/")))
    try:
        hashes = sha256_all(names[name] for name in kept)
    except OSError as error:
        raise CompressError(f"{error.filename or path}: cannot be read: {error.strerror}") from None
    return hashlib.sha256(canonical(list(zip(kept, hashes, strict=True)))).hexdigest()
