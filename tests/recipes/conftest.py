"""A folder with a tiny teacher and task, and runs of recipes there, once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_runs import TASK, TEACHER, Run, arguments, result_of

from compress.results import Result


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "task.yaml").write_text(TASK, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def run(world: Path) -> Run:
    """Return a function from recipe to its run's folder and result, run once."""
    runs: dict[str, tuple[Path, Result]] = {}

    def make(recipe: str) -> tuple[Path, Result]:
        if recipe not in runs:
            result = result_of(*arguments(recipe), cwd=world)
            runs[recipe] = world / "runs" / result.run, result
        return runs[recipe]

    return make
