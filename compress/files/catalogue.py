"""The folders of recipes, teachers and students, and the names in them. Reads no file, and imports little, so that a shell completes names
at once."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

Kind = Literal["recipes", "teachers", "students"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def catalogue_folder(kind: Kind) -> Path:
    """Return `compress/catalogue/<kind>` in an installed package, or `<kind>` beside the package in the source tree."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "catalogue" / kind
    return installed if installed.is_dir() else package.parent / kind


def names(kind: Kind) -> list[str]:
    """Return the names in the catalogue, sorted, without reading the files."""
    return sorted(path.stem for path in catalogue_folder(kind).glob("*.yaml"))
