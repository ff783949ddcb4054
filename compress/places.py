"""Paths as users write them, and where a command is to write, seen to before the work that goes there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from .errors import CompressError


def check_folder(folder: Path, option: str) -> None:
    """Raise `CompressError` where `folder` neither is one that can be written nor could be made; what is tried leaves nothing."""
    try:
        there = nearest(folder)
        tempfile.TemporaryDirectory(dir=there).cleanup()
        for name in folder.absolute().relative_to(there).parts:
            with suppress(FileNotFoundError):
                os.lstat(there / name)  # raises where a name is too long
    except OSError as error:
        raise CompressError(
            f"{folder}: cannot be written: {error.strerror}; choose another folder with {option}"
        ) from None


def nearest(folder: Path) -> Path:
    """`folder`, or that of its parents which is there and lies next to it; a link to nothing is there."""
    places = (folder.absolute(), *folder.absolute().parents)
    return next(place for place in places if place.exists() or place.is_symlink())


def from_home(word: str | Path) -> Path:
    """The path, with `~` or `~name` at its start read as that home folder. Raises `CompressError` where there is none."""
    try:
        return Path(word).expanduser()
    except RuntimeError:
        raise CompressError(f"{word}: begins with ~ and the name of nobody here; write it from / on") from None
