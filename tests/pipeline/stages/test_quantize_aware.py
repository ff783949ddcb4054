"""Quantization-aware training in a run: its plan, its result, and that an interruption changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from default_suite import slow
from listeners import StopError, Stopping
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Listener, Plan, Request, plan_all
from compress.pipeline.building import build_nodes
from compress.pipeline.plan import Context
from compress.pipeline.stages import quantize_aware
from compress.pipeline.training import run as training_run
from compress.quantize.node_selection import QuantizationPlan
from compress.quantize.qat_params import FACTORS_FILE, RANGES_FILE, REPEATS_FILE, Trained, trained_params
from compress.quantize.ranges import Range
from compress.store import Artifact, Store
from compress.training import make_accelerator

pytestmark = pytest.mark.end_to_end

STEPS = 6
TEACHER_ALONE = """
name: alone
title: The teacher itself
stages:
  - finetune: {max_steps: 4, batch_size: 8, learning_rate: 1.0e-3}
  - quantize_aware: {epochs: 3, max_steps: 6, batch_size: 8, learning_rate: 1.0e-4, ranges: RANGES, evaluate_every: 0.25}
  - export:
  - quantize: {method: qat, portable: true}
"""
REGRESSION = """
name: toy
text: [sentence1, sentence2]
label: score
kind: regression
metrics: [pearson, spearman]
max_length: 16
synthetic: {generator: similarity, train: 40, dev: 8}
"""


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    (tmp_path / "alone.yaml").write_text(TEACHER_ALONE.replace("RANGES", "learned"))
    return tmp_path


def planned(world: Path, recipe: str, *overrides: str) -> Plan:
    word = str(world / f"{recipe}.yaml") if (world / f"{recipe}.yaml").exists() else recipe
    request = Request((word,), (str(world / "task.yaml"),), teacher=str(world / "teacher"), overrides=overrides)
    return plan_all(request)[0]


def test_the_student_of_the_recipe_is_trained_on(world: Path) -> None:
    (world / "one.yaml").write_text("{name: one, title: S, architecture: distilbert, layers: 1}")
    recipe, task = "distilbert-int8-qat", str(world / "task.yaml")
    request = Request((recipe,), (task,), teacher=str(world / "teacher"), student=str(world / "one.yaml"))
    (plan,) = plan_all(request)
    assert plan.models == ("teacher-fp32", "student-fp32", "student-int8")
    assert plan.checkpoint("student") == "student-qat"
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["student-qat"].inputs == {"model": "student"}
    assert nodes["student-int8"].inputs == {"student": "student-qat", "student-fp32": "student-fp32"}


def test_a_trained_teacher_is_a_model_beside_the_baseline(world: Path) -> None:
    plan = planned(world, "alone")
    assert plan.models == ("teacher-fp32", "teacher-qat-fp32", "teacher-qat-qdq", "teacher-qat-int8")
    assert (plan.checkpoint("teacher"), plan.checkpoint("teacher-qat")) == ("teacher", "teacher-qat")
    assert plan.sizes["teacher-qat"] == plan.sizes["teacher"]


def test_the_key_has_what_the_training_depends_on(world: Path) -> None:
    base, trained = planned(world, "alone").keys, "teacher-qat"
    for override in (
        "quantize.reduce_range=true",
        "quantize.exclude=[pooler]",
        "quantize.calibration=minmax",
        "quantize_aware.ranges=moving_average",
        "quantize_aware.smooth=false",
        "quantize_aware.losses=[{name: soft_target}]",
    ):
        assert planned(world, "alone", override).keys[trained] != base[trained], override
    for override in (
        "quantize.bias_correction=true",
        "quantize.alpha=0.5",
    ):  # it has no texts to correct with, and sets its own
        assert planned(world, "alone", override).keys == base


@pytest.mark.parametrize(
    ("ranges", "micro", "is_new"), [("moving_average", 4, True), ("moving_average", 8, False), ("learned", 4, False)]
)
def test_ranges_that_an_earlier_version_moved_with_every_micro_batch_are_not_taken(
    world: Path, monkeypatch: pytest.MonkeyPatch, ranges: str, micro: int, is_new: bool
) -> None:
    """Of a batch of 8."""
    described: list[dict[str, Any]] = []

    def add(draft: Any, kind: Any, name: str, spec: Any, fields: dict[str, Any], **more: Any) -> None:
        described.append(fields)
        add_changed(draft, kind, name, spec, fields, **more)

    add_changed = quantize_aware.add_changed
    monkeypatch.setattr(quantize_aware, "add_changed", add)
    planned(world, "alone", f"quantize_aware.ranges={ranges}", f"quantize_aware.micro_batch_size={micro}")
    assert ["moves" in fields for fields in described] == [is_new]


@pytest.mark.parametrize(
    ("recipe", "overrides", "message"),
    [
        ("int8", ["quantize.method=qat"], r"quantize.method: qat uses the ranges of a `quantize_aware` stage"),
        ("alone", ["quantize_aware.enabled=false"], r"quantize.method: qat uses the ranges of a `quantize_aware`"),
        (
            "alone",
            ["quantize.method=static"],
            r"quantize_aware: nothing uses its ranges; set `quantize: {method: qat}`",
        ),
        ("alone", ["export.graph=plain"], r"export.graph: `quantize_aware` trains what the fast graph computes"),
        ("alone", ["quantize_aware.layer_map=[[1, 3]]"], r"layer_map: \[1, 3\] is outside a student of 2 layers"),
        ("alone", ["quantize_aware.losses=[{name: masked_lm}]"], r"masked_lm is for other stages"),
        (
            "alone",
            ["quantize_aware.losses=[{name: relation_kl, heads: 7}]"],
            r"recipe alone, stage quantize_aware, model teacher: relation_kl: 7 relation heads do not divide .* hidden size 32",
        ),
        (
            "alone",
            ["quantize_aware.losses=[{name: relation_kl, teacher_layer: 9}]"],
            r"relation_kl: teacher_layer is 9 and the teacher has 2 layers",
        ),
        ("alone", ["quantize_aware.ranges=fixed"], r"quantize_aware.ranges"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(
    world: Path, recipe: str, overrides: list[str], message: str
) -> None:
    more = ["quantize_aware.losses=[{name: hidden_mse}]"] if "layer_map" in overrides[0] else []
    with pytest.raises(CompressError, match=message):
        planned(world, recipe, *more, *overrides)


def artifacts_of(plan: Plan, root: Path, listener: Listener) -> dict[str, Artifact]:
    context = Context(plan.task, "fp32", threads=1, listener=listener, checkpoint_seconds=-1)
    return build_nodes(plan, plan.nodes, context, Store(root / ".store"))[0]


def contents(artifact: Artifact) -> dict[str, bytes]:
    changing = ("manifest.json", "log.jsonl")
    return {path.name: path.read_bytes() for path in artifact.path.iterdir() if path.name not in changing}


@pytest.mark.parametrize("ranges", ["moving_average", *slow("learned", "learned, smooth: false")])
def test_it_runs_and_an_interruption_changes_nothing(world: Path, ranges: str) -> None:
    from transformers import AutoModelForSequenceClassification

    (world / "alone.yaml").write_text(TEACHER_ALONE.replace("RANGES", ranges))
    plan = planned(world, "alone")
    whole = artifacts_of(plan, world / "whole", Listener())
    with pytest.raises(StopError):
        artifacts_of(plan, world / "parts", Stopping(3, STEPS))
    again = Stopping(99, STEPS)
    parts = artifacts_of(plan, world / "parts", again)
    assert again.seen == [3, 4, 5, 6]  # the third step was lost before its state was saved
    assert contents(parts["teacher-qat"]) == contents(whole["teacher-qat"])
    folder, info = whole["teacher-qat"].path, whole["teacher-qat"].info
    _, loading = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not any(loading[name] for name in ("missing_keys", "unexpected_keys"))
    spans = json.loads((folder / RANGES_FILE).read_text())
    assert len(spans) == len({name.rpartition("/")[0] for name in spans}) == 10
    assert (folder / FACTORS_FILE).exists() == ("smooth" not in ranges)
    for layer in range(1):
        scope = f"bert.encoder.layer.{layer}.attention.self"
        assert spans[f"{scope}.query/MatMul"] == spans[f"{scope}.key/MatMul"] == spans[f"{scope}.value/MatMul"]
    assert (
        info["fidelity"]["trained"]["mean_abs_logit_change"] != info["fidelity"]["calibrated"]["mean_abs_logit_change"]
    )
    assert info["steps"] == STEPS
    for name in ("teacher-qat-int8", "teacher-qat-qdq"):
        int8_info = whole[name].info
        assert int8_info["calibration_examples"] == 0
        assert int8_info["int8_matmuls"] == len(spans)
        # Against its own checkpoint: the effect of rounding the trained weights.
        assert 0 < int8_info["fidelity"]["mean_abs_logit_change"] < 0.1


def test_it_trains_in_fp32_in_a_run_of_bf16(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bf16 is no more precise than the int8 values to be learnt."""
    precisions: list[str] = []

    def note(precision: str) -> Any:
        precisions.append(precision)
        return make_accelerator(precision)

    monkeypatch.setattr(training_run, "make_accelerator", note)
    plan = planned(world, "alone")
    context = Context(plan.task, "bf16", threads=1, listener=Listener(), checkpoint_seconds=-1)
    artifacts = build_nodes(plan, plan.nodes, context, Store(world / "bf16" / ".store"))[0]
    assert artifacts["teacher"].info["precision"] == "bf16"
    assert artifacts["teacher-qat"].info["precision"] == "fp32"
    assert precisions == ["bf16", "fp32"]


@pytest.mark.slow
def test_a_score_is_learnt_from_the_scores_in_fp32(world: Path) -> None:
    (world / "task.yaml").write_text(REGRESSION)
    whole = artifacts_of(planned(world, "alone"), world / "whole", Listener())
    info = whole["teacher-qat"].info
    assert info["fidelity"]["trained"]["flips"] is None
    assert np.isfinite(info["fidelity"]["trained"]["mean_abs_logit_change"])


def test_ranges_of_another_model_or_none_are_refused(tmp_path: Path) -> None:
    plan = QuantizationPlan(int8=("a/MatMul", "b/MatMul"), weight_only=(), kept=(), tables=())
    with pytest.raises(CompressError, match="none were given"):
        trained_params(plan, "static", None, Path("model.onnx"))
    with pytest.raises(CompressError, match=r"activation_ranges\.json: expected the ranges"):
        Trained.read(tmp_path)
    (tmp_path / RANGES_FILE).write_text('{"a/MatMul": [0, 1]}')
    trained = Trained.read(tmp_path)
    assert (trained.factors, trained.channel_repeats) == ({}, {})
    with pytest.raises(CompressError, match=r"1 matmuls have no range in .*, e\.g\. b/MatMul; it is of another model"):
        trained_params(plan, "static", trained, Path("model.onnx"))
    for name in (FACTORS_FILE, REPEATS_FILE):
        (tmp_path / name).write_bytes(b"{}")
        with pytest.raises(CompressError, match=f"{name}: expected a vector for each matmul"):
            Trained.read(tmp_path)
        (tmp_path / name).unlink()
    (tmp_path / RANGES_FILE).write_text('{"a/MatMul": [0]}')
    with pytest.raises(CompressError, match="expected the ranges"):
        Trained.read(tmp_path)


def test_what_a_training_leaves_is_read_as_it_was_written(tmp_path: Path) -> None:
    whole = Trained({"a": Range(-1.5, 2.0)}, {"a": np.array([0.5, 2.0], np.float32)}, {"a": np.array([1, 3])})
    whole.write(tmp_path)
    copy = Trained.read(tmp_path)
    assert copy.ranges == whole.ranges
    assert (copy.factors["a"] == whole.factors["a"]).all()
    assert (copy.channel_repeats["a"] == whole.channel_repeats["a"]).all()
