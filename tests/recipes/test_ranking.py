"""Every recipe of the catalogue on passages of queries, for a few steps, through the command line; and margin_mse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pretrained_toys import encoder_folder
from recipe_runs import TEACHER, check_layers, compress, is_quantized, result_of

from compress.catalog import names
from compress.results import Result

pytestmark = pytest.mark.end_to_end

LABELS = ("food", "place", "service")
COMMAND = (
    "--train",
    "train.jsonl",
    "--dev",
    "dev.jsonl",
    "--max-length",
    "24",
    "--threads",
    "1",
    "--no-bench",
)
MARGINS = """\
name: margins
title: margins of a teacher
student: distil-1l
stages:
  - finetune: {max_steps: 3, batch_size: 8}
  - distill:
      losses: [{name: margin_mse, weight: 1.0}, {name: soft_target, weight: 0.5, temperature: 1.0}]
      max_steps: 4
      batch_size: 8
      micro_batch_size: 4
  - export: {}
  - quantize: {method: dynamic}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "margins.yaml").write_text(MARGINS, encoding="utf-8")
    encoder_folder(folder / "bytes")
    for split, count in (("train", 40), ("dev", 12)):
        rows = [
            {
                "query": f"{split} {LABELS[n % 3]} {n}",
                "passage": f"{LABELS[p]} number {p} {n}",
                "relevance": int(p == n % 3),
            }
            for n in range(count)
            for p in range(3)
        ]
        order = np.random.default_rng(0).permutation(len(rows))
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(rows[n]) + "\n" for n in order), encoding="utf-8")
    return folder


def run(world: Path, recipe: str, *options: str) -> Result:
    return result_of("run", recipe, *COMMAND, *options, cwd=world)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", names("recipes"))
def test_the_recipe_runs(world: Path, recipe: str) -> None:
    goal = ("--set", "quantize.max_drop=100") if recipe.endswith("-auto") else ()
    text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    result = run(world, recipe, "--teacher", "tiny.yaml", *goal, *text)
    check_layers(result)
    assert result.task.kind == "ranking"
    assert set(result.final.scores["dev"]) == {"ndcg@10", "mrr@10"}
    fidelity = result.final.fidelity
    if is_quantized(result):
        assert fidelity is not None and fidelity.flips is None
        assert fidelity.query_flips is not None and fidelity.query_flips.queries == 12


@pytest.mark.slow
def test_a_student_learns_margins(world: Path) -> None:
    result = run(world, "margins.yaml", "--teacher", "tiny.yaml")
    (distilled,) = [stage for stage in result.stages if stage.kind.startswith("distill")]
    assert distilled.info["steps"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("other", [("--teacher", "./bytes", "--student", "distil-1l"), ("--student", "./bytes")])
def test_another_tokenizer_teaches_and_is_taught(world: Path, other: tuple[str, ...]) -> None:
    """From several teachers a student learns the mean of their scores, from a table, as from one with another tokenizer."""
    result = run(world, "logits", "--teacher", "tiny.yaml", *other, "--set", "finetune.max_steps=3", "--set", "distill.max_steps=3",
        "--precision", "fp32", "--set", "distill.losses=[{name: margin_mse}, {name: soft_target}]")  # fmt: skip
    assert set(result.final.scores["dev"]) == {"ndcg@10", "mrr@10"}
    if "--teacher" in other:
        assert result.ensemble is not None and [each.temperature for each in result.ensemble.teachers] == [None, None]
        with np.load(world / "runs" / result.run / "predictions.npz") as file:
            arrays = dict(file)
        each = [arrays[f"{teacher.predictions}/dev"] for teacher in result.ensemble.teachers]
        np.testing.assert_allclose(arrays["ensemble/dev"], np.mean(each, axis=0, dtype=np.float64), rtol=1e-9)


def test_margins_are_refused_for_other_kinds(world: Path) -> None:
    done = compress("run", "margins.yaml", *COMMAND, "--kind", "regression", "--text", "query", "--pair", "passage",
        "--label", "relevance", "--teacher", "tiny.yaml", cwd=world)  # fmt: skip
    assert done.returncode == 2
    assert (
        "loss margin_mse is for ranking tasks, and" in done.stderr
        and "is a regression task; leave it out" in done.stderr
    )


def test_batches_of_one_are_refused_before_anything_runs(world: Path) -> None:
    done = compress("run", "logits", *COMMAND, "--teacher", "tiny.yaml", "--set", "distill.batch_size=1", cwd=world)
    assert done.returncode == 2
    assert "stage distill: batch_size is 1; training compares passages of a query with each other" in done.stderr
