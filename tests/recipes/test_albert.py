"""Students with shared layer weights, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recipe_runs import TASK, TEACHER, result_of

from compress.results import Result

pytestmark = pytest.mark.end_to_end

STUDENT = """\
name: groups
title: Two blocks
architecture: albert
layers: 4
init: convert
albert: {embedding: 8, groups: 2}
"""
RECIPE = """\
name: two-blocks
title: Two blocks
description: Two blocks for four layers.
teacher: ./tiny.yaml
student: ./groups.yaml
stages:
  - finetune: {max_steps: 3}
  - distill:
      name: layers
      losses: [{name: embedding_mse}, {name: hidden_mse}]
      max_steps: 3
      keep: last
  - distill:
      name: answers
      losses: [{name: soft_cross_entropy}]
      max_steps: 3
  - export:
  - quantize:
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("albert")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "task.yaml").write_text(TASK)
    (folder / "two-blocks.yaml").write_text(RECIPE)
    (folder / "groups.yaml").write_text(STUDENT)
    return folder


@pytest.fixture(scope="module")
def result(world: Path) -> Result:
    words = ("run", "two-blocks.yaml", "--task", "task.yaml", "--teacher", "tiny.yaml")
    return result_of(*words, "--bench-runs", "1", "--threads", "1", "--precision", "fp32", cwd=world)


def checkpoint(world: Path, stage: str) -> tuple[dict[str, Any], set[str]]:
    """Return config.json and the weight names of a stage's checkpoint."""
    from safetensors import safe_open

    manifests = (path.read_text() for path in (world / "runs" / ".store").glob("*/manifest.json"))
    (key,) = (
        manifest["key"] for manifest in map(json.loads, manifests) if manifest["describe"]["label"].startswith(stage)
    )
    folder = world / "runs" / ".store" / key
    with safe_open(folder / "model.safetensors", framework="np") as file:
        return json.loads((folder / "config.json").read_text()), set(file.keys())


@pytest.mark.slow
def test_a_student_with_two_blocks_is_trained_in_two_stages(world: Path, result: Result) -> None:
    stages = {stage.kind: stage.info for stage in result.stages}
    start = stages["distill layers"]["start"]
    assert len(start["hidden_cosine"]) == 5
    assert set(start["table_errors"]) == {"word_embeddings", "position_embeddings", "token_type_embeddings"}
    assert "start" not in stages["distill answers"]
    log = [json.loads(line) for line in (world / "runs" / result.run / "log.jsonl").read_text().splitlines()]
    assert len([line for line in log if "hidden_mse" in line["losses"]]) == 3
    for name in ("layers", "answers"):
        config, names = checkpoint(world, f"distill {name}")
        assert config["num_hidden_groups"] == 2
        assert config["architectures"] == ["AlbertForSequenceClassification"]
        assert len([tensor for tensor in names if "albert_layer_groups" in tensor]) == 2 * 16  # sixteen tensors each
    assert result.final.precision == "int8"
    assert result.final.architecture.startswith("4 x 32")
    assert result.models[1].torch_eager is not None  # timed in a separate process
    assert result.final.parameters == result.models[1].parameters < result.models[0].parameters
