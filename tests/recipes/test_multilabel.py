"""Every recipe of the catalogue on texts with any number of labels, for a few steps, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recipe_runs import TEACHER, check_layers, is_quantized, result_of

from compress.catalog import names

pytestmark = pytest.mark.end_to_end

LABELS = ("food", "place", "service")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    for split, count in (("train", 120), ("dev", 40)):
        rows = [
            {"text": f"{split} {n} {' '.join(LABELS[: n % 4])}", "about": list(LABELS[: n % 4])} for n in range(count)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("recipe", names("recipes"))
def test_the_recipe_runs(world: Path, recipe: str) -> None:
    goal = ("--set", "quantize.max_flips=100", "--set", "quantize.max_drop=100") if recipe.endswith("-auto") else ()
    text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    files = ("--train", "train.jsonl", "--dev", "dev.jsonl", "--label", "about", "--max-length", "24")
    result = result_of(
        *("run", recipe, *files, "--teacher", "tiny.yaml", "--threads", "1", "--no-bench", *goal, *text),
        cwd=world,
    )
    check_layers(result)
    assert result.task.kind == "multilabel" and is_quantized(result) == (recipe != "prune")
    assert set(result.final.scores["dev"]) == {"f1_micro", "f1_macro"}
