"""Fixtures of tests of the runtime and of `predict`: a toy folder, and a separate cache folder for every test."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime_toys import bag


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bag(tmp_path / "bag")
