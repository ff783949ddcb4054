"""A wheel contains all that an installed package needs, and nothing else of a checkout."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the names of the wheel's files."""
    hatchling = pytest.importorskip("hatchling.builders.wheel", reason="of the development dependencies")
    built = next(
        hatchling.WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    )
    with zipfile.ZipFile(built) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_type_checkers_read_its_annotations(wheel: set[str]) -> None:
    assert "compress/py.typed" in wheel


def test_it_holds_the_package_and_the_catalogues(wheel: set[str]) -> None:
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "compress").rglob("*") if path.is_file()}
    cards = {f"compress/catalogue/{path.relative_to(ROOT).as_posix()}" for kind in ("teachers", "students", "recipes")
             for path in (ROOT / kind).iterdir()}  # fmt: skip
    assert wheel == {name for name in package if "__pycache__" not in name} | cards
