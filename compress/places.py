"""Paths as users write them, and where a command is to write, seen to before the work that goes there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .errors import CompressError


def check_folder(folder: Path, option: str) -> None:
    """Raise `CompressError` where `folder` neither is one that can be written nor could be made; what is tried leaves nothing."""
    try:
        nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists() or place.is_symlink())
        tempfile.TemporaryDirectory(dir=nearest).cleanup()
    except OSError as error:
        raise CompressError(
            f"{folder}: cannot be written: {error.strerror}; choose another folder with {option}"
        ) from None


def from_home(word: str | Path) -> Path:
    """The path, with `~` or `~name` at its start read as that home folder. Raises `CompressError` where there is none."""
    try:
        return Path(word).expanduser()
    except RuntimeError:
        raise CompressError(f"{word}: begins with ~ and the name of nobody here; write it from / on") from None
