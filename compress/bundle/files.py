"""The files of a bundle: which ones it may contain, and whether they are the ones listed, all inside the folder."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath

from ..models.sentence_encoders.folders import MODULES, POOLING, PROMPTS, TEXTS
from ..runtime.folder import MODEL_FILES, unpadded_beside
from ..store.hashing import sha256_all
from .document import CARD, NAME, FileEntry

GRAPHS = tuple(f"onnx/{name}" for name in MODEL_FILES.values())
# Beside tokenizer.json, where a checkpoint has them: consumers other than `tokenizers` read some of them.
TOKENIZER_FILES = ("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt")
# The files by which sentence-transformers opens a sentence encoder.
_SENTENCES = {MODULES, POOLING, PROMPTS, TEXTS}
_HELD = _SENTENCES | {CARD, "config.json", "tokenizer.json", "tokenizer_config.json", *TOKENIZER_FILES, *GRAPHS}
_HELD |= {unpadded_beside(Path(name)).as_posix() for name in GRAPHS}
_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json")
_FROM_THE_HUB = re.compile(r"\.gitattributes|\.cache/huggingface/.*")  # what `hf download` adds; nothing reads it
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def is_plain(name: str) -> bool:
    """Whether this is a relative POSIX path below the folder, of plain characters: no `..`, no root, no drive, no other
    separators."""
    return name == PurePosixPath(name).as_posix() and all(_PLAIN.fullmatch(part) for part in name.split("/"))


def is_allowed_name(name: str) -> bool:
    """Whether a bundle may contain a file of this name (docs/bundle.md: Layout): what `compress ship` writes, nothing that
    runs when it is loaded."""
    return name in _HELD or is_weights(name)


def is_weights(name: str) -> bool:
    """Whether a checkpoint's file of this name contains safetensors weights, or their index."""
    return _WEIGHTS.fullmatch(name) is not None


def contents(folder: Path) -> dict[str, str]:
    """Map the relative name of everything below `folder`, except folders, to "file", "link" or "special"; no link is followed."""
    kinds: dict[str, str] = {}
    for parent, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            path = Path(parent, entry)
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode):
                kinds[path.relative_to(folder).as_posix()] = _kind(mode)
    return kinds


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "special"


def measure(folder: Path) -> dict[str, FileEntry]:
    """Return size and SHA-256 of every file but bundle.json."""
    names = sorted(name for name in contents(folder) if name != NAME)
    hashes = sha256_all(folder / name for name in names)
    return {
        name: FileEntry(bytes=(folder / name).stat().st_size, sha256=digest)
        for name, digest in zip(names, hashes, strict=True)
    }


def file_problems(folder: Path, listed: dict[str, FileEntry]) -> list[str]:
    """Return one line per listed name that is unsafe, and per file that is missing, not listed, not allowed in a bundle, a
    link or altered."""
    unsafe = [f"{name!r}: not a plain name inside the bundle" for name in listed if not is_plain(name) or name == NAME]
    if unsafe:
        return unsafe
    kinds = {name: kind for name, kind in contents(folder).items() if not _FROM_THE_HUB.fullmatch(name)}
    kinds.pop(NAME, None)
    lines = [f"{name}: {kind} instead of a file" for name, kind in kinds.items() if kind != "file"]
    lines += [f"{name}: missing" for name in listed if name not in kinds]
    lines += [f"{name!r}: not listed in {NAME}" for name in kinds if name not in listed]
    lines += [
        f"{name!r}: no file that a bundle may hold; remove it, and from {NAME}"
        for name in listed
        if not is_allowed_name(name)
    ]
    if lines:
        return lines
    return [line for name in listed if (line := _file_problem(folder / name, name, listed[name]))]


def _file_problem(path: Path, name: str, entry: FileEntry) -> str | None:
    size = path.stat().st_size
    if size != entry.bytes:
        return f"{name}: has {size:,} bytes, expected {entry.bytes:,}"
    try:
        return None if sha256_all([path]) == [entry.sha256] else f"{name}: altered: its SHA-256 differs"
    except OSError as error:
        return f"{name}: cannot be read: {error.strerror}"
