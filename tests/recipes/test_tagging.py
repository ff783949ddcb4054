"""Every recipe of the catalogue on tagging, for a few steps, through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_runs import TEACHER, check_layers, is_quantized, result_of

from compress.catalog import names

pytestmark = pytest.mark.end_to_end

TAGS = ("O", "B-FOOD", "I-FOOD", "O", "B-PLACE", "O")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    for split, count in (("train", 120), ("dev", 40)):
        lines = []
        for number in range(count):
            words = [f"{split}{number}", *("good", "small", "river", "music", "town", "food")[: 2 + number % 5]]
            lines += [f"{word} {tag}" for word, tag in zip(words, TAGS, strict=False)] + [""]
        (folder / f"{split}.conll").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("recipe", names("recipes"))
def test_the_recipe_runs(world: Path, recipe: str) -> None:
    goal = ("--set", "quantize.max_flips=100", "--set", "quantize.max_drop=100") if recipe.endswith("-auto") else ()
    text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    files = ("--train", "train.conll", "--dev", "dev.conll", "--max-length", "12")
    result = result_of(
        *("run", recipe, *files, "--teacher", "tiny.yaml", "--threads", "1", "--no-bench", *goal, *text),
        cwd=world,
    )
    check_layers(result)
    assert result.task.kind == "tagging" and is_quantized(result) == (recipe != "prune")
    assert (result.final.info.get("int8_matmuls", 0) > 0) == (recipe != "prune")
    assert set(result.final.scores["dev"]) == {"entity_f1"}
