"""One run and one bundle per task shape, made once; tests that change a bundle copy it first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle_making import Run, make_run

from compress.bundle import ship


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    made: dict[str, Run] = {}

    def make(task: str = "toy-sentiment") -> Run:
        if task not in made:
            made[task] = make_run(tmp_path_factory.mktemp("run"), task)
        return made[task]

    return make


@pytest.fixture(scope="session")
def bundle_of(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Run]) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(task: str = "toy-sentiment") -> Path:
        if task not in made:
            run = run_of(task)
            made[task] = ship(run.folder, tmp_path_factory.mktemp("bundle") / "out", store=run.store)
        return made[task]

    return make


@pytest.fixture
def run(run_of: Callable[..., Run]) -> Run:
    return run_of()


@pytest.fixture
def bundle(bundle_of: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy that the test may damage."""
    return Path(shutil.copytree(bundle_of(), tmp_path / "copy"))
