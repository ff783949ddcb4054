"""The recipe with two prunes in docs/recipes.md can be planned as printed, and runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from recipe_runs import TASK, TEACHER, compress

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/recipes.md").read_text(encoding="utf-8").split("### Prune in turns")[1].split("\n#")[0]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (recipe,) = re.findall(r"^```yaml\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    for name, text in {"twice": recipe, "tiny": TEACHER, "task": TASK}.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_stages_are_called_as_the_page_says(world: Path) -> None:
    (words,) = re.findall(r"^\$ compress run (.+)$", SECTION, re.MULTILINE)
    done = compress("plan", *words.replace("--no-bench", "--json").split(), "--set", "second.flops=0.6", cwd=world)
    assert done.returncode == 0, done.stderr
    (plan,) = json.loads(done.stdout)
    assert {stage["stage"]: stage["settings"].get("flops") for stage in plan["stages"]}["prune student-second"] == 0.6
    rows = [row.split("|")[2] for row in SECTION.splitlines() if row.startswith("| `")]
    shown = [name for row in rows for name in re.findall(r"`(.+?)`", row)]
    assert [stage["stage"] for stage in plan["stages"]][2:] == shown


@pytest.mark.slow
def test_it_runs_in_a_few_steps(world: Path) -> None:
    short = [f"{stage}.max_steps=2" for stage in ("finetune", "recover", "again")]
    short += [f"{stage}.examples=24" for stage in ("first", "second")]
    sets = [word for each in short for word in ("--set", each)]
    options = ("--task", "task.yaml", "--teacher", "tiny.yaml", "--threads", "1", "--no-bench")
    done = compress("run", "twice.yaml", *options, *sets, cwd=world)
    assert done.returncode == 0, done.stderr
    (file,) = (world / "runs").glob("twice-*/result.json")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert [(model["name"], model["precision"]) for model in result["models"]] == [
        ("teacher", "fp32"),
        ("student", "fp32"),
        ("student", "int8"),
    ]
    assert [record["stage"] for record in result["pruning"]] == ["first", "second"]
