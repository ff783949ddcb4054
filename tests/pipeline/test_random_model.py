"""Nodes that `exclude` names are known before any training, from a model with random weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import onnx
import pytest
from default_suite import slow
from recipe_runs import TASK, TEACHER

from compress.errors import CompressError
from compress.models.dimensions import Dimensions
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.preflight import preflight
from compress.pipeline.random_model import random_graph
from compress.pipeline.run import build_stage

pytestmark = pytest.mark.end_to_end

QUICK = {
    "int8": ("finetune",),
    "distilbert": ("finetune", "distill"),
    "albert": ("finetune", "intermediate", "prediction"),
}


def request(place: Path, recipe: str, *overrides: str) -> Request:
    (place / "tiny.yaml").write_text(TEACHER)
    (place / "tiny-task.yaml").write_text(TASK)
    task, root = str(place / "tiny-task.yaml"), place / "runs"
    return Request((recipe,), (task,), teacher=str(place / "tiny.yaml"), overrides=overrides, root=root, bench=None)


@pytest.mark.parametrize(
    ("recipe", "graph"),
    [("distilbert", "fast"), *slow(("distilbert", "plain"), *product(["int8", "albert"], ["fast", "plain"]))],
)
def test_a_random_graph_has_the_nodes_of_the_file(tmp_path: Path, recipe: str, graph: str) -> None:
    quick = [f"{stage}.max_steps=2" for stage in QUICK[recipe]]
    exporting = request(tmp_path, recipe, f"export.graph={graph}", *quick)
    (plan,) = plan_all(exporting)
    name = plan.models[-1].rpartition("-")[0]
    file = onnx.load(build_stage(exporting, f"{name}-fp32").path / "model.onnx")
    named = [node.name for node in random_graph(plan, name, plan.sizes[name]).graph.node]
    assert named == [node.name for node in file.graph.node]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("[layer.7]", "quantize.exclude: 'layer.7' matches no weight matmul or embedding of the student's file; they are named like"),
        ("[MatMul]", "`exclude: [MatMul]` leaves none"),
    ],
)  # fmt: skip
def test_an_exclude_that_does_not_fit_costs_no_training(tmp_path: Path, patterns: str, expected: str) -> None:
    plans = plan_all(request(tmp_path, "distilbert", f"quantize.exclude={patterns}"))
    with pytest.raises(CompressError) as caught:
        preflight(plans, tmp_path / "runs")
    assert expected in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("recipe", ["int8", "distilbert", "albert", "static"])
def test_an_exclude_that_fits_passes(tmp_path: Path, recipe: str) -> None:
    for pattern in ["word_embeddings"] if recipe == "static" else ["word_embeddings", "query|q_lin"]:
        preflight(plan_all(request(tmp_path, recipe, f"quantize.exclude=['{pattern}']")), tmp_path / "runs")
    with pytest.raises(CompressError, match=r"quantize.exclude: 'nonsense' matches no"):
        preflight(plan_all(request(tmp_path, recipe, "quantize.exclude=[nonsense]")), tmp_path / "runs")


def test_seeds_and_precisions_are_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[str] = []

    def count(plan: Plan, name: str, sizes: Dimensions) -> onnx.ModelProto:
        graphs.append(name)
        return random_graph(plan, name, sizes)

    monkeypatch.setattr("compress.pipeline.random_model.random_graph", count)
    several = replace(request(tmp_path, "distilbert", "quantize.exclude=[q_lin]", "quantize.avx2=true"), seeds=(0, 1))
    preflight(plan_all(several), tmp_path / "runs")
    assert graphs == ["student"]
