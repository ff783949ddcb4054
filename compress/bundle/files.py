"""The files of a bundle: which there are, whether they are the ones listed, and nothing outside the folder."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath

from ..store.hashing import sha256_all
from .document import NAME, FileEntry

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def is_plain(name: str) -> bool:
    """A relative POSIX path below the folder, of plain letters: no `..`, no root, no drive, no separators of others."""
    return name == PurePosixPath(name).as_posix() and all(_PLAIN.fullmatch(part) for part in name.split("/"))


def contents(folder: Path) -> dict[str, str]:
    """Relative name -> "file", "link" or "special", of everything below `folder` but folders; no link is followed."""
    found: dict[str, str] = {}
    for parent, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            path = Path(parent, entry)
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode):
                kind = "file" if stat.S_ISREG(mode) else "link" if stat.S_ISLNK(mode) else "special"
                found[path.relative_to(folder).as_posix()] = kind
    return found


def measure(folder: Path) -> dict[str, FileEntry]:
    """Size and SHA-256 of every file but bundle.json."""
    names = sorted(name for name in contents(folder) if name != NAME)
    hashes = sha256_all(folder / name for name in names)
    return {
        name: FileEntry(bytes=(folder / name).stat().st_size, sha256=digest)
        for name, digest in zip(names, hashes, strict=True)
    }


def problems(folder: Path, listed: dict[str, FileEntry]) -> list[str]:
    """One line per listed name that is unsafe, and per file that is missing, added, a link or altered."""
    unsafe = [f"{name!r}: not a plain name inside the bundle" for name in listed if not is_plain(name) or name == NAME]
    if unsafe:
        return unsafe
    found = contents(folder)
    found.pop(NAME, None)
    lines = [f"{name}: {kind} instead of a file" for name, kind in found.items() if kind != "file"]
    lines += [f"{name}: missing" for name in listed if name not in found]
    lines += [f"{name!r}: not listed in {NAME}" for name in found if name not in listed]
    if lines:
        return lines
    return [line for name in listed if (line := _altered(folder / name, name, listed[name]))]


def _altered(path: Path, name: str, entry: FileEntry) -> str | None:
    size = path.stat().st_size
    if size != entry.bytes:
        return f"{name}: has {size:,} bytes, expected {entry.bytes:,}"
    try:
        return None if sha256_all([path]) == [entry.sha256] else f"{name}: altered: its SHA-256 differs"
    except OSError as error:
        return f"{name}: cannot be read: {error.strerror}"
