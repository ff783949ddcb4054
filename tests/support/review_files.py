"""Reviews with stars, as a user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(folder: Path, name: str, labels: list[Any], *, header: str = "review,stars") -> Path:
    rows = [f"the {name} film {i} was {word},{label}" for i, label in enumerate(labels) for word in ("fine", "dull")]
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path
