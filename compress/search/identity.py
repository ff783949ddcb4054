"""A folder belongs to one search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..errors import CompressError

IDENTITY = "search.lock.json"


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
        raise CompressError(
            f"{folder}: holds another search: {other[0]} is {found.get(other[0])!r} there and {wanted.get(other[0])!r} here; "
            "choose another folder with --out"
        )
