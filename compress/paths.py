"""Paths as users write them, and where a command is to write, seen to before the work that goes there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import CompressError

OWN_FOLDER = "./"  # what records begin a checkpoint's folder with: names of cards and of the hub have none
_HUB = "hub:"  # what a corpus that is a data set begins with
NO_PATHS = frozenset({"exclude", "title", "description"})  # fields of recipes, whose words may look like paths


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
    """The path, with `~` or `~name` at its start read as that home folder. Raises `CompressError` where there is none, and for
    what no path can be."""
    try:
        path = Path(word).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.lstat(path)
    except RuntimeError:
        raise CompressError(f"{word}: begins with ~ and the name of nobody here; write it from / on") from None
    except (OSError, ValueError) as error:  # too long, or with a byte of 0
        problem = error.strerror if isinstance(error, OSError) else error
        raise CompressError(f"{word}: cannot be a path: {problem}") from None
    return path


def shown(word: str) -> str:
    """How a record names a path: from where the command runs if it lies below, else by its last name alone. A name, and a
    path from here, stay as they are: records travel, and are to say nothing of whose folders they were made in."""
    prefix = _HUB if word.startswith(_HUB) else ""
    path = Path(word.removeprefix(prefix))
    if not path.is_absolute() and ".." not in path.parts and not word.startswith("~"):
        return word
    try:
        absolute = from_home(path).resolve()
    except (CompressError, ValueError, OSError):
        return prefix + path.name
    below = absolute.is_relative_to(Path.cwd())
    return prefix + (absolute.relative_to(Path.cwd()).as_posix() if below else absolute.name)


def without_places(document: Any) -> Any:
    """A document of dictionaries, lists and scalars with every text in it that is a path as `shown`; fields of `NO_PATHS` as they are."""
    if isinstance(document, dict):
        return {name: value if name in NO_PATHS else without_places(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [without_places(value) for value in document]
    return shown(document) if isinstance(document, str) else document
