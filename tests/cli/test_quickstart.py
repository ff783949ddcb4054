"""`make quickstart`: its four recipes share a report, and no later command overwrites it."""

from __future__ import annotations

import shlex
from pathlib import Path

from compress.pipeline import Request, plan_all

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")


def test_one_command_has_all_recipes_and_its_report_is_the_only_shared_one(tmp_path: Path) -> None:
    block = MAKEFILE.partition("\nquickstart:")[2].partition("\n\n")[0]
    commands = [shlex.split(line)[2:] for line in block.splitlines() if "compress run" in line]
    recipes = [words[: next(i for i, word in enumerate(words) if word.startswith("--"))] for words in commands]
    assert recipes[-1] == ["distilbert", "int8", "tinybert-small", "albert"]
    assert all(len(names) == 1 for names in recipes[:-1])  # their reports are in the folders of their runs
    settings = tuple(after for word, after in zip(commands[-1], commands[-1][1:], strict=False) if word == "--set")
    request = Request(tuple(recipes[-1]), ("toy-sentiment",), teacher="bert-mini", overrides=settings, root=tmp_path)
    assert [plan.recipe.name for plan in plan_all(request)] == recipes[-1]
