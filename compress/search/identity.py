"""A folder belongs to one search."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..errors import CompressError

IDENTITY = "search.lock.json"
_NAMES = {"axes": "--try"}  # of what the command line calls otherwise


def claim(folder: Path, identity: dict[str, Any]) -> None:
    """Raises `CompressError` for a folder of another search."""
    path, text = folder / IDENTITY, json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if not path.exists():
        write_text(path, text)
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("expected an object")
    except (OSError, ValueError) as error:
        raise CompressError(f"{path}: cannot be read: {error}; choose another folder with --out") from None
    wanted = json.loads(text)
    other = [name for name in sorted({*wanted, *found}) if wanted.get(name) != found.get(name)]
    if other:
        there, here = (_shown(other[0], document.get(other[0])) for document in (found, wanted))
        raise CompressError(
            f"{folder}: holds another search: {_NAMES.get(other[0], other[0])} is {there} there and {here} here; "
            f"rename {folder} once it has ended, and this one uses the stages that it finished; or begin anew with --out {_free(folder)}"
        )


def _free(folder: Path) -> Path:
    """Beside `folder`: `search-2`, or the first number after it that nothing has."""
    return next(path for number in count(2) if not (path := folder.with_name(f"{folder.name}-{number}")).exists())


def _shown(name: str, value: Any) -> str:
    """What varies as it is given on the command line."""
    if name == "axes" and isinstance(value, list) and all(isinstance(axis, list) and len(axis) == 2 for axis in value):
        return ", ".join(f"{axis}={values}" for axis, values in value) or "nothing"
    return repr(value)
