"""One run and one bundle per task shape, made once; tests that change a bundle copy it first."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundle_making import Run, make_run

from compress.bundle import Check, read_bundle, ship
from compress.bundle.verifying.graph_checks import Verification


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    runs: dict[str, Run] = {}

    def make(task: str = "toy-sentiment") -> Run:
        if task not in runs:
            runs[task] = make_run(tmp_path_factory.mktemp("run"), task)
        return runs[task]

    return make


@pytest.fixture(scope="session")
def bundle_of(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Run]) -> Callable[[str], Path]:
    bundles: dict[str, Path] = {}

    def make(task: str = "toy-sentiment") -> Path:
        if task not in bundles:
            run = run_of(task)
            bundles[task] = ship(run.folder, tmp_path_factory.mktemp("bundle") / "out", store=run.store)
        return bundles[task]

    return make


@pytest.fixture
def run(run_of: Callable[..., Run]) -> Run:
    return run_of()


@pytest.fixture
def bundle(bundle_of: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy that the test may damage."""
    return Path(shutil.copytree(bundle_of(), tmp_path / "copy"))


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the checks of `verify` in this process, in tests that are not about its child process."""

    def checks(folder: Path, options: dict[str, Any]) -> list[Check]:
        return Verification(folder, read_bundle(folder), **options).checks()

    if "apart" not in request.fixturenames:
        monkeypatch.setattr(
            sys.modules["compress.bundle.verifying.verify"], "isolated_checks", checks
        )  # the package has a function of the same name


@pytest.fixture
def apart() -> None:
    """Request this fixture in tests of the process that `verify` starts."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the cache of file hashes out of the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"
