"""Progressive sharing through the command line: a block for each layer, pulled together, then one block for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_every_recipe import TASK, TEACHER, compress

from compress.results import Result

STUDENT = """\
name: {name}
title: {name}
architecture: {architecture}
layers: 4
init: convert
albert: {{embedding: 8, share: {share}{more}}}
"""
RECIPE = """\
name: progressive
title: Progressive sharing
description: A block for each layer, pulled together, then shared.
teacher: ./tiny.yaml
student: ./groups.yaml
stages:
  - finetune: {max_steps: 3}
  - distill:
      name: apart
      untied: true
      losses: [{name: embedding_mse}, {name: hidden_mse}, {name: block_spread, weight: 0.5, groups: 2}]
      max_steps: 3
      keep: last
  - distill:
      name: together
      losses: [{name: soft_cross_entropy}]
      max_steps: 3
  - export:
  - quantize:
"""
HALF = """\
name: half
title: Half a block
description: The feed-forward network shared.
teacher: ./tiny.yaml
student: ./ffn.yaml
stages:
  - finetune: {max_steps: 3}
  - distill: {losses: [{name: soft_cross_entropy}], max_steps: 2}
  - export:
  - quantize:
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("albert")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "task.yaml").write_text(TASK)
    (folder / "progressive.yaml").write_text(RECIPE)
    (folder / "half.yaml").write_text(HALF)
    (folder / "groups.yaml").write_text(
        STUDENT.format(name="groups", architecture="albert", share="all", more=", groups: 2")
    )
    (folder / "ffn.yaml").write_text(STUDENT.format(name="ffn", architecture="partial-albert", share="ffn", more=""))
    return folder


@pytest.fixture(scope="module")
def results(world: Path) -> dict[str, Result]:
    """recipe -> its result; both in one command."""
    words = ("run", "progressive.yaml", "half.yaml", "--task", "task.yaml", "--teacher", "tiny.yaml")
    done = compress(*words, "--bench-runs", "1", "--threads", "1", "--precision", "fp32", "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    made = [Result.model_validate(document) for document in json.loads(done.stdout)]
    return {result.recipe["name"]: result for result in made}


def checkpoint(world: Path, stage: str) -> tuple[dict[str, Any], set[str]]:
    """config.json and the names of the weights that a stage wrote."""
    from safetensors import safe_open

    manifests = (path.read_text() for path in (world / "runs" / ".store").glob("*/manifest.json"))
    (key,) = (told["key"] for told in map(json.loads, manifests) if told["describe"]["label"].startswith(stage))
    folder = world / "runs" / ".store" / key
    with safe_open(folder / "model.safetensors", framework="np") as file:
        return json.loads((folder / "config.json").read_text()), set(file.keys())


def test_blocks_are_trained_apart_then_together(world: Path, results: dict[str, Result]) -> None:
    result = results["progressive"]
    stages = {stage.kind: stage.info for stage in result.stages}
    start = stages["distill apart"]["start"]
    assert len(start["hidden_cosine"]) == 5
    assert set(start["table_errors"]) == {"word_embeddings", "position_embeddings", "token_type_embeddings"}
    assert min(start["hidden_cosine"]) > 0.5  # every layer starts as the teacher's: only the tables are short
    assert "start" not in stages["distill together"]
    log = [json.loads(line) for line in (world / "runs" / result.run / "log.jsonl").read_text().splitlines()]
    spread = [line["losses"]["block_spread"] for line in log if "block_spread" in line["losses"]]
    assert len(spread) == 3
    assert all(0 < value <= 0.5 for value in spread)  # a share of the weights, times its weight
    apart, together = (checkpoint(world, f"distill {name}") for name in ("apart", "together"))
    assert (apart[0]["num_hidden_groups"], together[0]["num_hidden_groups"]) == (4, 2)
    assert together[0]["architectures"] == ["AlbertForSequenceClassification"]
    assert len(apart[1]) - len(together[1]) == 2 * 16  # two blocks less, of sixteen tensors each
    assert result.final.parameters == result.models[1].parameters < result.models[0].parameters


def test_a_student_that_shares_half_a_block_runs_to_the_end(world: Path, results: dict[str, Result]) -> None:
    """Timed on PyTorch too, in a process of its own, which must know the architecture."""
    result = results["half"]
    assert result.final.precision == "int8"
    assert result.final.architecture.startswith("4 x 32")
    assert result.models[1].torch_eager is not None
    config, _ = checkpoint(world, "distill student")
    assert (config["model_type"], config["shared"]) == ("partial-albert", "ffn")
