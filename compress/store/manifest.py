"""The manifest: the contents of an artefact, with a SHA-256 per file and one of its own."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..files.atomic import sync
from .hashing import naming, sha256_all

NAME = "manifest.json"
SCHEMA = 1


class DamagedError(Exception):
    """An artefact differs from its manifest; the message says how, in one line."""


def contents(folder: Path) -> dict[str, os.stat_result]:
    """Return relative name -> status of every file below `folder`. Names that start with a dot are left out: they are other tools' records.

    Raises `DamagedError` for links and special files; `OSError` if a folder cannot be read now.
    """
    statuses: dict[str, os.stat_result] = {}
    for place, folders, files in os.walk(folder, onerror=_fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in (*folders, *files) if not name.startswith(".")):
            status, name = path.lstat(), path.relative_to(folder).as_posix()
            if stat.S_ISREG(status.st_mode):
                statuses[name] = status
            elif not stat.S_ISDIR(status.st_mode):
                raise DamagedError(f"{name} is a link or a special file")
    return statuses


def _fail(error: OSError) -> None:
    raise error


def _json_value(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy scalars and arrays, torch tensors
        return value.tolist()
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"a manifest holds JSON values, not {type(value).__name__}")


def write(folder: Path, key: str, describe: dict[str, Any], info: dict[str, Any], seconds: float) -> None:
    """Hash and sync every file in `folder`, then write the manifest, last."""
    entries = sorted(contents(folder).items())
    hashes = sha256_all(folder / name for name, _ in entries)
    for name, _ in entries:
        sync(folder / name)
    files = {
        name: {"bytes": status.st_size, "sha256": digest}
        for (name, status), digest in zip(entries, hashes, strict=True)
    }
    document = {
        "schema": SCHEMA,
        "key": key,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "describe": describe,
        "info": info,
        "seconds": round(seconds, 3),
        "files": files,
    }
    document = json.loads(json.dumps(document, default=_json_value))
    document["digest"] = _digest(document)
    (folder / NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    sync(folder / NAME)
    for below in [*(path for path in folder.rglob("*") if path.is_dir()), folder]:
        sync(below)


def _digest(document: dict[str, Any]) -> str:
    """Hash of everything but itself, so that a changed byte in the manifest is detected too."""
    body = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read(folder: Path, key: str) -> dict[str, Any]:
    """Return the manifest of `folder`; raises `DamagedError` when it is absent, altered or another artefact's. `OSError` passes through."""
    try:
        with naming(folder / NAME):
            document = json.loads((folder / NAME).read_bytes())
    except (FileNotFoundError, IsADirectoryError, ValueError) as error:
        raise DamagedError(f"{NAME} cannot be read ({type(error).__name__})") from None
    if not isinstance(document, dict) or document.get("digest") != _digest(document):
        raise DamagedError(f"{NAME} was altered")
    if document["schema"] != SCHEMA or document["key"] != key:
        raise DamagedError(f"{NAME} is that of another artefact or version")
    return document


def verify(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Compare every file of `folder` with the manifest's `files`; raises `DamagedError` naming the first difference.

    A disk that cannot be read now is no evidence against the artefact: `OSError` passes through.
    """
    statuses = contents(folder)
    statuses.pop(NAME, None)
    for name in sorted(files.keys() ^ statuses.keys()):
        raise DamagedError(f"{name} is {'missing' if name in files else 'not in the manifest'}")
    for name, status in statuses.items():
        if status.st_size != files[name]["bytes"]:
            raise DamagedError(f"{name} has {status.st_size} bytes, expected {files[name]['bytes']}")
    try:
        hashes = sha256_all(folder / name for name in statuses)
    except FileNotFoundError as error:
        raise DamagedError(f"{error.filename} cannot be read ({error.strerror})") from None
    for name, digest in zip(statuses, hashes, strict=True):
        if digest != files[name]["sha256"]:
            raise DamagedError(f"{name} was altered (SHA-256 differs)")
