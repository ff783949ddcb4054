"""docs/extending.md is correct: applied to a copy of the package and its tests, its additions and changes are formatted and pass the
tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (Add .+?)\n(.+?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
FILE = re.compile(r"^```(?:python|yaml)\n# (\S+\.\w+)\n(.+?)^```$", re.MULTILINE | re.DOTALL)
DIFF = re.compile(r"^```diff\n--- (\S+)\n(.+?)^```$", re.MULTILINE | re.DOTALL)
TOUCHED = sorted({name for name, _ in (*FILE.findall(PAGE), *DIFF.findall(PAGE)) if name.endswith(".py")})
ONE_OF = {  # files whose other tests are slow
    "tests/pipeline/test_gpu_stages.py": "test_all_stages_that_compute_and_all_losses_are_among_them"
}
LISTING = (  # unchanged tests that list all parts of a registry
    "tests/quantize/test_methods.py",
    "tests/tasks/own/test_refusals.py",
    "tests/pipeline/test_several_teachers_refused.py",
    "tests/runtime/test_folders.py",
)


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """Return a copy of the package and its tests with all additions of the page."""
    for name in ("compress", "teachers", "students", "recipes", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in FILE.findall(PAGE):
        assert not (tmp_path / name).exists(), f"{name} is there already"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, change in DIFF.findall(PAGE):
        text = (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(applied(name, text, change), encoding="utf-8")
    return tmp_path


def applied(name: str, text: str, change: str) -> str:
    """Return a file's text with the hunks of a diff applied; the text must contain each hunk's old lines once."""
    for hunk in change.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        after = "".join(line[1:] for line in lines if not line.startswith("-"))
        assert text.count(before) == 1, f"{name}: expected once, found {text.count(before)} times:\n{before}"
        text = text.replace(before, after)
    return text


def test_every_section_adds_files_with_tests() -> None:
    assert SECTIONS
    for title, section in SECTIONS.items():
        names = [name for name, _ in FILE.findall(section)]
        assert any(name.startswith("compress/") for name in names), title
        assert any(name.startswith("tests/") for name in names), title


def test_a_kind_of_task_touches_at_most_nine_files_of_the_package() -> None:
    section = SECTIONS["Add a task kind"]
    touched = {name for name, _ in (*FILE.findall(section), *DIFF.findall(section)) if name.startswith("compress/")}
    assert len(touched) <= 9, touched


def run(folder: Path, *command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_what_the_page_adds_and_changes_is_in_format(extended: Path) -> None:
    run(extended, "ruff", "check", "compress", *TOUCHED)
    run(extended, "ruff", "format", "--check", *TOUCHED)


@pytest.mark.slow
def test_what_the_page_adds_works(extended: Path) -> None:
    tests = [f"{name}::{ONE_OF[name]}" if name in ONE_OF else name for name in TOUCHED if name.startswith("tests/")]
    run(extended, "pytest", "-p", "no:cacheprovider", *tests, *LISTING)
