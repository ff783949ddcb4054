"""The stage `relu`: its result for every family it supports, what it depends on, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import keeping
from family_teachers import LABELS, classifier_of
from listeners import Notices
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import read_config
from compress.models.pruned.shape import prunable_families
from compress.pipeline import Plan, Request, plan_all, run_all
from compress.pipeline.random_model import config_of
from compress.pipeline.run import build_stage
from compress.pruning.repair import repair
from compress.report.sections.activations import activation_tables
from compress.search.latency import shape_of

pytestmark = pytest.mark.end_to_end

TRAINED = "  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}\n"
TEACHER = f"name: alone\ntitle: T\nstages:\n{TRAINED}  - relu:\n  - export:\n  - quantize:\n"
STUDENT = f"""
name: small
title: S
student: one.yaml
stages:
{TRAINED}
  - distill: {{max_steps: 8, batch_size: 8, losses: [{{name: soft_target}}]}}
  - prune: {{flops: 0.7, examples: 24}}
  - relu: {{examples: 24}}
  - export:
  - quantize: {{alpha: 0.5}}
"""


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    (tmp_path / "alone.yaml").write_text(TEACHER)
    (tmp_path / "small.yaml").write_text(STUDENT.replace("one.yaml", str(tmp_path / "one.yaml")))
    (tmp_path / "one.yaml").write_text("{name: one, title: S, layers: 2, architecture: {bert: distilbert}}")
    return tmp_path


def request(world: Path, *overrides: str, recipe: str = "alone") -> Request:
    words = (str(world / f"{recipe}.yaml"),), (str(world / "task.yaml"),)
    return Request(
        *words, teacher=str(world / "teacher"), root=world / "runs", overrides=overrides, threads=1, bench=None
    )


def planned(world: Path, *overrides: str, recipe: str = "alone") -> Plan:
    return plan_all(request(world, *overrides, recipe=recipe))[0]


@pytest.mark.parametrize(
    ("recipe", "model", "own"), [("alone", "teacher-relu", "hidden_act"), ("small", "student", "activation")]
)
def test_the_model_has_relu_and_the_rest_as_before(world: Path, recipe: str, model: str, own: str) -> None:
    heard = Notices()
    (result,) = run_all(request(world, recipe=recipe), heard)
    assert [each.name for each in result.models] == ["teacher", *[model] * 2]
    folder, plan = world / "runs" / result.run, planned(world, recipe=recipe)
    files = json.loads((folder / "models.json").read_text())[f"{model}-int8"]
    node = next(node for node in plan.nodes if node.kind.name == "relu")
    after = world / "runs/.store" / node.key
    before = world / "runs/.store" / next(other.key for other in plan.nodes if other.id == node.inputs["model"])
    changed = {name for name, value in read_config(after).items() if read_config(before).get(name) != value}
    assert changed == {own}
    assert read_config(after)[own] == "relu"
    info = json.loads((after / "manifest.json").read_text())["info"]
    (said,) = (line for line in heard.notices if line.startswith(f"{node.id}: tuning score"))
    assert f"{info['before']:.1f} before, {info['replaced']:.1f} with ReLU, {info['fitted']:.1f} fitted" in said
    variant: Any = SimpleNamespace(runs=[result])
    (table,) = activation_tables(variant)
    scores = [f"{info[name]:.2f}" for name in ("before", "replaced", "fitted")]
    assert [cell.text for cell in table.lines[0].cells] == [
        "0",
        node.id,
        str(info["examples"]),
        *scores,
        f"{info['same']:.1%}",
    ]
    graph = onnx.load(world / "runs/.store" / files["onnx"]).graph
    operators = [each.op_type for each in graph.node]
    assert "Gelu" not in operators and operators.count("Relu") >= 2
    makers = {name: each.op_type for each in graph.node for name in each.output}
    assert "Relu" not in {makers.get(name) for each in graph.node if each.op_type == "Mul" for name in each.input}


def batches() -> list[dict[str, Any]]:
    torch.manual_seed(3)
    ids, mask = torch.randint(5, 90, (1024, 11)), torch.ones(1024, 11, dtype=torch.int64)
    mask[1, 7:], mask[2, 2:] = 0, 0
    return [{"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}]


FAMILIES = keeping([family.name for family in prunable_families()], ["bert", "distilbert", "mpnet"])


@pytest.mark.parametrize("family", FAMILIES)
def test_fitted_matrices_make_up_for_the_change(family: str, tmp_path: Path) -> None:
    """On texts other than those of the fit."""
    whole = classifier_of(family).eval()
    whole.save_pretrained(tmp_path)
    words: dict[str, Any] = {"kind": "classification", "labels": LABELS, "trained": True}
    alone, fitted = (load_classifier(tmp_path, **words, activation="relu").eval() for _ in range(2))
    repair(fitted, whole, batches(), first_token=True)
    torch.manual_seed(9)
    ids = torch.randint(5, 90, (16, 11))
    with torch.no_grad():
        expected, replaced, repaired = (model(input_ids=ids).logits for model in (whole, alone, fitted))
    away = [float((logits - expected).square().mean().sqrt() / expected.std()) for logits in (replaced, repaired)]
    assert away[0] > 0.01
    assert away[1] < 0.5 * away[0]


def test_it_may_be_trained_for_int8_afterwards(world: Path) -> None:
    text = (world / "alone.yaml").read_text()
    text = text.replace(
        "  - export:\n  - quantize:",
        "  - quantize_aware: {max_steps: 2, batch_size: 8}\n  - export:\n  - quantize: {method: qat}",
    )
    (world / "aware.yaml").write_text(text.replace("name: alone", "name: aware"))
    (result,) = run_all(request(world, recipe="aware"))
    assert result.final.precision == "int8"
    kept = json.loads((world / "runs" / result.run / "checkpoints.json").read_text())
    assert read_config(world / "runs/.store" / kept[result.final.name])["hidden_act"] == "relu"


def test_keys_are_of_what_the_stage_depends_on(world: Path) -> None:
    def keys(*overrides: str) -> dict[str, str]:
        return planned(world, *overrides).keys

    usual = keys()
    assert keys("quantize.method=dynamic")["teacher-relu"] == usual["teacher-relu"]
    others = [keys("relu.examples=24"), keys("finetune.max_steps=1")]
    assert len({variant["teacher-relu"] for variant in (usual, *others)}) == 3
    off = planned(world, "relu.enabled=false")
    assert off.models == ("teacher-fp32", "teacher-int8")


def test_a_model_that_has_relu_is_refused(world: Path) -> None:
    config = world / "teacher/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_act": "relu"}))
    with pytest.raises(
        CompressError, match=r"relu: teacher has ReLU already; leave it out with --set relu\.enabled=false"
    ):
        planned(world)


def test_layers_that_share_weights_are_refused(world: Path) -> None:
    shutil.rmtree(world / "teacher")
    whole = classifier_of("albert")
    whole.save_pretrained(world / "teacher")
    with pytest.raises(CompressError, match="found albert: leave it out"):
        planned(world)


def test_a_search_tells_its_shapes_apart(world: Path) -> None:
    plans = planned(world), planned(world, "relu.enabled=false")
    shapes = [shape_of(plan, plan.sizes["teacher"]) or {} for plan in plans]
    assert [shape["activation"] == "relu" for shape in shapes] == [True, False]
    assert config_of(plans[0], "teacher-relu", plans[0].task.data.labels).hidden_act == "relu"


def test_the_graph_is_that_of_the_model_with_relu(world: Path) -> None:
    config = world / "teacher/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_act": "silu"}))  # no fast graph supports it
    nodes: Any = planned(world).nodes
    graphs = {node.id: node.spec.graph for node in nodes if node.kind.name == "export"}
    assert graphs == {"teacher-fp32": "plain", "teacher-relu-fp32": "fast"}


def test_a_model_that_is_to_have_relu_is_timed_with_it(world: Path) -> None:
    def keys(recipe: str, budget: str) -> dict[str, str]:
        return {node.kind.name: node.key for node in planned(world, "prune.flops=null", budget, recipe=recipe).nodes}

    text = (world / "small.yaml").read_text()
    (world / "gelu.yaml").write_text(
        text.replace("name: small", "name: gelu").replace("  - relu: {examples: 24}\n", "")
    )
    timed = [keys(recipe, "prune.latency=0.7")["prune"] for recipe in ("small", "gelu")]
    counted = [keys(recipe, "prune.size_mb=0.02")["prune"] for recipe in ("small", "gelu")]
    assert timed[0] != timed[1]
    assert counted[0] == counted[1]


def test_a_stopped_fit_begins_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*words: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("compress.pruning.repair.repair", stopped)
    with pytest.raises(KeyboardInterrupt):
        build_stage(request(world), "teacher-relu")
    monkeypatch.undo()
    once = build_stage(request(world), "teacher-relu")
    again = build_stage(replace(request(world), root=world / "others"), "teacher-relu")
    weights = [(artifact.path / "model.safetensors").read_bytes() for artifact in (once, again)]
    assert weights[0] == weights[1]
    assert np.isfinite(once.info["fitted"])
