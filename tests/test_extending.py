"""docs/extending.md is true: its files and changes, built into a copy of the package, pass their own tests."""

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


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """A copy of the package with all that the page adds."""
    for name in ("compress", "teachers", "students", "recipes"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "tests/conftest.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, text in FILE.findall(PAGE):
        assert not (tmp_path / name).exists(), f"{name} is there already"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, change in DIFF.findall(PAGE):
        text = (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(applied(name, text, change), encoding="utf-8")
    return tmp_path


def applied(name: str, text: str, change: str) -> str:
    """The text of a file with the hunks of a diff, whose lines must stand in it once."""
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


@pytest.mark.slow
def test_what_the_page_adds_works(extended: Path) -> None:
    tests = [name for name, _ in FILE.findall(PAGE) if name.startswith("tests/")]
    environment = {**os.environ, "PYTHONPATH": str(extended)}
    for command in (["pytest", "-p", "no:cacheprovider", *tests], ["ruff", "check", "compress", *tests]):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=extended, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
