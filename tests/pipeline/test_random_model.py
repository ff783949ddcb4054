"""Nodes that `exclude` names are known before any training, from a model with random weights."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from default_suite import covering
from recipe_runs import TASK, TEACHER

from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.pipeline.preflight import preflight
from compress.pipeline.random_model import random_graph
from compress.pipeline.run import build_stage

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


@pytest.mark.parametrize(("recipe", "graph"), covering(["distilbert", "int8", "albert"], ["fast", "plain"], []))
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
    preflight(plan_all(request(tmp_path, recipe, "quantize.exclude=[classifier]")), tmp_path / "runs")
    preflight(plan_all(request(tmp_path, recipe, "quantize.exclude=[embedding]")), tmp_path / "runs")
