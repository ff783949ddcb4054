"""docs/kinds: each page's example runs, and its data, task file, programs and commands match the page."""

from __future__ import annotations

import re
import runpy
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import recipe_runs
import typer.main
from whole import load_task

import compress
from compress.cli import app
from compress.spec.kinds import KINDS
from compress.tasks import resolve_task

ROOT = Path(__file__).parents[1]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "kinds").glob("*.md"))}
COMMANDS: Any = getattr(typer.main.get_command(app), "commands")  # noqa: B009

TEACHER = """
name: tiny
title: BERT, 4 layers × 32, random weights
licence: Apache-2.0
random: {layers: 4, hidden: 32, heads: 2, intermediate: 64, vocabulary: 300, max_positions: 64}
"""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """Return the arguments of each `compress` command."""
    lines = "".join(blocks(page, "console")).splitlines()
    return [shlex.split(line, comments=True)[2:] for line in lines if line.startswith("$ compress ")]


def test_every_kind_has_a_page_of_the_same_sections() -> None:
    assert set(PAGES) == set(KINDS)
    sections = {kind: re.findall(r"^## (.+)", page, re.MULTILINE) for kind, page in PAGES.items()}
    assert all(titles == sections["classification"] for titles in sections.values()), sections


@pytest.mark.parametrize("page", ["docs/tasks.md", "docs/README.md"])
def test_the_page_lists_every_kind(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not [kind for kind in KINDS if f"[{kind}](kinds/{kind}.md)" not in text]


@pytest.mark.parametrize("kind", PAGES)
def test_its_commands_are_read(kind: str) -> None:
    lines = commands(PAGES[kind])
    assert {name for name, *_ in lines} == {"run", "ship", "verify", "predict"}
    for name, *words in lines:
        COMMANDS[name].make_context(name, words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAGES)
def test_its_example_runs_and_the_page_is_of_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGES[kind]
    ((script, name),) = re.findall(r"^\$ python (examples/\w+\.py) --out (\w+)", page, re.MULTILINE)
    (tmp_path / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("compress.run", partial(compress.run, threads=1))
    monkeypatch.setattr("sys.argv", [script, "--teacher", "tiny.yaml", "--out", name, "--steps", "2"])
    monkeypatch.syspath_prepend(ROOT / "examples")
    runpy.run_path(str(ROOT / script), run_name="__main__")
    shown = capsys.readouterr().out
    assert (
        re.search(r"^student int8: \S+ \d+\.\d\d", shown, re.MULTILINE)
        and "verified: True\n" in shown
        and not shown.endswith("verified: True\n")
    )

    (example,) = blocks(page.split("## Data")[1].split("As a task file")[0], "(?:csv|json|text)")
    (train,) = Path(name).glob("train.*")
    assert train.read_text(encoding="utf-8").startswith(example)

    task, *_ = blocks(page, "yaml")  # embedding has more: tests/tasks/test_tasks_docs.py
    Path(name, "task.yaml").write_text(task, encoding="utf-8")
    assert load_task(*resolve_task(f"{name}/task.yaml"), None).spec.kind == kind

    (program,) = blocks(page.split("## In Python")[1].split("\n## ")[0], "python")
    exec(program, {})
    assert capsys.readouterr().out

    for command, *words in commands(page):
        if command == "run":
            check(["plan", *words], tmp_path)
        if command == "predict":
            check([command, *(f"{name}/bundle" if word == f"{name}/int8" else word for word in words)], tmp_path)


def check(words: list[str], folder: Path) -> None:
    done = recipe_runs.compress(*words, cwd=folder)
    assert done.returncode == 0 and (done.stdout or "--output" in words), done.stderr
