"""The identity of a search, so that its folder belongs to it alone."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from ..errors import CompressError
from ..files.atomic import write_text

IDENTITY = "search.lock.json"
FILES = "files"  # recipe and student -> hash of the files that they use
_NAMES = {"axes": "--try"}  # what the command line calls differently


def claim(folder: Path, identity: dict[str, Any]) -> bool:
    """Claim `folder` for a search, and return whether it was free. Raises `CompressError` if it belongs to another search."""
    path, text = folder / IDENTITY, json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if not path.exists():
        write_text(path, text)
        return True
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise ValueError("expected an object")
    except (OSError, ValueError) as error:
        raise CompressError(f"{path}: cannot be read: {error}; choose another folder with --out") from None
    wanted = json.loads(text)
    names = sorted({*wanted, *document} - {FILES})
    other = [name for name in (*names, FILES) if wanted.get(name) != document.get(name)]
    if other:
        differing = _describe_difference(other[0], document.get(other[0]), wanted.get(other[0]))
        raise CompressError(
            f"{folder}: holds another search: {differing}; "
            f"rename {folder} once it has ended, and this one uses the stages that it finished; "
            f"or start another with --out {_free_folder(folder)}"
        )
    return False


def _free_folder(folder: Path) -> Path:
    """Return the first of `search-2`, `search-3`, … beside `folder` that does not exist."""
    return next(path for number in count(2) if not (path := folder.with_name(f"{folder.name}-{number}")).exists())


def _describe_difference(name: str, there: Any, here: Any) -> str:
    if name == FILES:
        if not isinstance(there, dict):
            return "it was begun by an earlier version of compress, which kept less of its files"
        changed = [name for name, digest in here.items() if there.get(name) != digest]
        return f"the file of a recipe, teacher or student has changed since, for {', '.join(changed or here)}"
    return f"{_NAMES.get(name, name)} is {_format_value(name, there)} there and {_format_value(name, here)} here"


def _format_value(name: str, value: Any) -> str:
    """Spell a value for a message; varied settings as on the command line."""
    if name == "axes" and isinstance(value, list) and all(isinstance(axis, list) and len(axis) == 2 for axis in value):
        return ", ".join(f"{axis}={values}" for axis, values in value) or "nothing"
    return repr(value)
