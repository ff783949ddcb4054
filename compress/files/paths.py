"""Paths as users write them, and checks of where a command will write, made before its work."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import CompressError

OWN_FOLDER = "./"  # prefix of a checkpoint's folder in records: names of cards and of the hub have none
_HUB = "hub:"  # prefix of a corpus that is a data set
NO_PATHS = frozenset({"exclude", "title", "description"})  # fields of recipes, whose words may look like paths


def check_folder(folder: Path, option: str) -> None:
    """Raise `CompressError` if `folder` cannot be written or created; the check leaves nothing behind."""
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
    """Return `folder`, or the nearest of its parents that exists; a broken link counts as existing."""
    places = (folder.absolute(), *folder.absolute().parents)
    return next(place for place in places if place.exists() or place.is_symlink())


def from_home(word: str | Path) -> Path:
    """Return the path, with a leading `~` or `~name` expanded, but not that of `./~name`, which `Path` writes without `./`: see
    `given_path`. Raises `CompressError` if there is no such user, and for what cannot be a path."""
    try:
        path = Path(word).expanduser() if str(word).startswith("~") else Path(word)
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.lstat(path)
    except RuntimeError:
        raise CompressError(
            f"{word}: begins with ~ and the name of nobody here; write it from / on, or with ./ before it"
        ) from None
    except (OSError, ValueError) as error:  # too long, or with a byte of 0
        problem = error.strerror if isinstance(error, OSError) else error
        raise CompressError(f"{word}: cannot be a path: {problem}") from None
    return path


def given_path(word: str | Path) -> Path:
    """Return the path, with a leading `~` expanded, and from / on if its own name begins with `~`, for later readers that expand it.
    Raises `CompressError` if there is no such user."""
    path = from_home(word) if str(word).startswith("~") else Path(word)
    return path.absolute() if str(path).startswith("~") else path


def not_from_home(path: str) -> str:
    """Return a relative path so that a leading `~` is part of a name when it is read again."""
    return f"{OWN_FOLDER}{path}" if path.startswith("~") else path


def display_path(word: str) -> str:
    """Return how a record names a path: relative to the working directory if it is below that, else by its last name alone.
    A name, and a relative path, stay as they are. Records are passed on, and must not reveal whose folders they were made
    in."""
    prefix = _HUB if word.startswith(_HUB) else ""
    path = Path(word.removeprefix(prefix))
    if not path.is_absolute() and ".." not in path.parts and not word.startswith("~"):
        return word
    try:
        absolute = from_home(path).resolve()
    except (CompressError, ValueError, OSError):
        return prefix + not_from_home(path.name)
    below = absolute.is_relative_to(Path.cwd())
    return prefix + not_from_home(absolute.relative_to(Path.cwd()).as_posix() if below else absolute.name)


def without_places(document: Any) -> Any:
    """Return a document of dictionaries, lists and scalars with every path in it as from `display_path`; fields of `NO_PATHS` are
    unchanged."""
    if isinstance(document, dict):
        return {name: value if name in NO_PATHS else without_places(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [without_places(value) for value in document]
    return display_path(document) if isinstance(document, str) else document
