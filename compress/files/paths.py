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
NOT_PATHS = frozenset({"exclude", "title", "description"})  # fields of recipes, whose words may look like paths


def check_folder(folder: Path, option: str) -> None:
    """Raise `CompressError` if `folder` cannot be written or created; the check leaves nothing behind."""
    try:
        existing = nearest_existing(folder)
        tempfile.TemporaryDirectory(dir=existing).cleanup()
        for name in folder.absolute().relative_to(existing).parts:
            with suppress(FileNotFoundError):
                os.lstat(existing / name)  # raises where a name is too long
    except OSError as error:
        raise CompressError(
            f"{folder}: cannot be written: {error.strerror}; choose another folder with {option}"
        ) from None


def nearest_existing(folder: Path) -> Path:
    """Return `folder`, or the nearest of its parents that exists; a broken link counts as existing."""
    candidates = (folder.absolute(), *folder.absolute().parents)
    return next(path for path in candidates if path.exists() or path.is_symlink())


def expand_home(word: str | Path) -> Path:
    """Return the path with a leading `~` or `~name` expanded. Raises `CompressError` if there is no such user, or for what is no path.

    Give it the user's own text: of `./~name`, which is not expanded, `Path` drops the `./` (see `unambiguous_path`).
    """
    try:
        path = Path(word).expanduser() if str(word).startswith("~") else Path(word)
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.lstat(path)
    except RuntimeError:
        raise CompressError(
            f"{word}: begins with ~, and there is no user of that name; write the path from /, or with ./ before it"
        ) from None
    except (OSError, ValueError) as error:  # too long, or with a byte of 0
        problem = error.strerror if isinstance(error, OSError) else error
        raise CompressError(f"{word}: cannot be a path: {problem}") from None
    return path


def yaml_here(name: str) -> str | None:
    """Return `NAME.yaml` if the current folder has a file of that name; None also for what cannot be a name."""
    path = f"{name}.yaml"
    return path if os.path.isfile(path) else None  # noqa: PTH113 - of a name that is too long, False


def unambiguous_path(word: str | Path) -> Path:
    """Return the path with a leading `~` expanded. A path such as `./~name` becomes absolute, so that nobody expands it later.

    Raises `CompressError` if there is no such user.
    """
    path = expand_home(word) if str(word).startswith("~") else Path(word)
    return path.absolute() if str(path).startswith("~") else path


def escape_home(path: str) -> str:
    """Return a relative path with `./` before a leading `~`, which is then not expanded when the path is read again."""
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
        absolute = expand_home(path).resolve()
    except (CompressError, ValueError, OSError):
        return prefix + escape_home(path.name)
    below = absolute.is_relative_to(Path.cwd())
    return prefix + escape_home(absolute.relative_to(Path.cwd()).as_posix() if below else absolute.name)


def with_display_paths(document: Any) -> Any:
    """Return a document of dictionaries, lists and scalars with every path in it as from `display_path`; fields of `NOT_PATHS` are
    unchanged."""
    if isinstance(document, dict):
        return {name: value if name in NOT_PATHS else with_display_paths(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [with_display_paths(value) for value in document]
    return display_path(document) if isinstance(document, str) else document
