"""Several budgets, and budgets of latency and of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow
from prune_runs import TEACHER_ALONE, build_pruned, planned, request

from compress.errors import CompressError
from compress.pipeline import Plan
from compress.pipeline.run import build_stage
from compress.pipeline.stages.prune import budget as prune_budget
from compress.pipeline.stages.prune import layer_costs, prune
from compress.pruning import scores
from compress.pruning.budget import narrowest

pytestmark = pytest.mark.end_to_end


def test_a_list_of_budgets_is_a_curve_whose_last_point_goes_on(world: Path) -> None:
    artifact = build_pruned(world, "alone", "prune.flops=[0.8,0.6,0.5]")
    points = artifact.info["points"]
    assert [point["budget"] for point in points] == [0.8, 0.6, 0.5]
    assert [point["flops"] for point in points] == sorted((point["flops"] for point in points), reverse=True)
    assert all(point["flops"] <= point["budget"] for point in points)
    alone = build_pruned(world, "alone")
    assert points[-1] == alone.info["points"][0]
    files = [(each.path / "model.safetensors").read_bytes() for each in (artifact, alone)]
    assert files[0] == files[1]


def test_a_smoothed_file_is_no_larger_than_the_budget(world: Path) -> None:
    """With the smoothing factors and repeated channels of the recipes' method, which are not all known in advance."""
    whole = build_stage(request(world, "alone", "prune.flops=0.6"), "teacher-pruned-int8").info["bytes"] / 1e6
    words = request(world, "alone", f"prune.size_mb={whole:.4f}")
    (point,) = build_stage(words, "teacher-pruned").info["points"]
    size = build_stage(words, "teacher-pruned-int8").info["bytes"] / 1e6
    assert size <= point["reached"]
    assert point["reached"] <= whole + 1e-4


@pytest.mark.parametrize(("precision", "share"), [("int8", 0.25), *slow(("fp32", 0.25), ("int8", 0.7), ("fp32", 0.7))])
def test_the_file_is_as_large_as_the_budget_says(world: Path, precision: str, share: float) -> None:
    recipe, settings = ("alone", ["quantize.method=static"]) if precision == "int8" else ("plain", [])
    most = build_stage(request(world, recipe, *settings, f"prune.flops={share}"), f"teacher-pruned-{precision}")
    whole = round(most.info["bytes"] / 1e6, 4)
    words = request(world, recipe, *settings, f"prune.size_mb={whole}")
    (point,) = build_stage(words, "teacher-pruned").info["points"]
    assert share > 0.5 or [] in point["heads"] or 0 in point["neurons"]
    name = {"fp32": "model.onnx", "int8": "model_quantized.onnx"}[precision]
    size = (build_stage(words, f"teacher-pruned-{precision}").path / name).stat().st_size / 1e6
    assert size <= whole
    assert size == pytest.approx(point["reached"], rel=0.02)


@pytest.mark.parametrize("settings", [["export.opset=23"], *slow(["export.graph=plain"])])
def test_labels_and_the_form_of_the_graph_count(world: Path, settings: list[str]) -> None:
    """Long labels are a tenth of this file, and the exporter's graph is larger than the fast one."""
    labels, settings = [f"{name}{'-' * 1000}" for name in ("no", "yes")], ["quantize.method=static", *settings]
    for name, count in (("train", 40), ("dev", 8)):
        rows = [f"{name} film {row} was {('dull', 'superb')[row % 2]},{labels[row % 2]}" for row in range(count)]
        (world / f"{name}.csv").write_text("\n".join(["sentence,label", *rows]) + "\n")
    task = (world / "task.yaml").read_text().partition("synthetic")[0].replace("[negative, positive]", str(labels))
    (world / "task.yaml").write_text(f"{task}files: {{train: train.csv, dev: dev.csv}}\n")
    most = build_stage(request(world, "alone", *settings, "prune.flops=0.5"), "teacher-pruned-int8")
    budget = round(most.info["bytes"] / 1e6 - 3e-4, 4)
    words = request(world, "alone", *settings, f"prune.size_mb={budget}")
    (point,) = build_stage(words, "teacher-pruned").info["points"]
    size = build_stage(words, "teacher-pruned-int8").info["bytes"] / 1e6
    assert budget - 3e-3 < size <= min(budget, point["reached"])


def with_vocabulary(world: Path, settings: str, precision: str = "int8") -> None:
    """Write the recipe `both`, which prunes and then keeps only the tokens of train."""
    recipe = TEACHER_ALONE.replace("alone", "both").replace("  - export:", f"  - vocabulary: {settings}\n  - export:")
    (world / "both.yaml").write_text(recipe if precision == "int8" else recipe.replace("  - quantize:\n", ""))


@pytest.mark.parametrize(("precision", "most"), [("int8", 60), *slow(("int8", None), ("fp32", None))])
def test_the_budget_counts_the_tokens_that_a_vocabulary_leaves(world: Path, precision: str, most: int | None) -> None:
    with_vocabulary(world, f"{{most: {most}}}" if most else "{}", precision)
    settings = ["quantize.method=static"] if precision == "int8" else []
    file, name = (
        f"teacher-pruned-{precision}",
        {"fp32": "model.onnx", "int8": "model_quantized.onnx"}[precision],
    )
    whole = build_stage(request(world, "both", *settings, "prune.flops=0.5"), file)
    budget = round((whole.path / name).stat().st_size / 1e6, 4)
    words = request(world, "both", *settings, f"prune.size_mb={budget}")
    (point,) = build_stage(words, "teacher-pruned").info["points"]
    size = (build_stage(words, file).path / name).stat().st_size / 1e6
    assert size <= budget
    assert size == pytest.approx(point["reached"], rel=0.02)


def test_a_vocabulary_allows_a_smaller_file_and_refusals_name_it(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune_budget, "_GRAPH_MB", 0.0)
    with_vocabulary(world, "{most: 60}")
    alone = planned(world, "alone")
    least = prune_budget.least_mb(alone, narrowest(alone.sizes["teacher"]))
    with pytest.raises(CompressError, match=r"expected at least \d.*neurons cost; found"):
        check(planned(world, "alone", f"prune.size_mb={least - 3e-4}"))
    check(planned(world, "both", f"prune.size_mb={least - 3e-4}"))
    with pytest.raises(
        CompressError, match=r"expected at least .* cost with the \d\d tokens that stage vocabulary may leave; found"
    ):
        check(planned(world, "both", "prune.size_mb=0.001"))
    whole = 1.1 * prune_budget.least_mb(alone, alone.sizes["teacher"]) - 3e-4
    check(planned(world, "alone", f"prune.size_mb={whole}"))
    with pytest.raises(
        CompressError, match=r"expected less than the model has, .* tokens that stage vocabulary may leave; found"
    ):
        check(planned(world, "both", f"prune.size_mb={whole}"))


@pytest.mark.parametrize(("setting", "most"), [("embeddings=false", False), ("exclude=[classifier]", True)])
def test_what_int8_leaves_in_fp32_counts_for_the_size(
    world: Path, monkeypatch: pytest.MonkeyPatch, setting: str, most: bool
) -> None:
    monkeypatch.setattr(prune_budget, "_GRAPH_MB", 0.0)
    sizes = planned(world, "alone").sizes["teacher"]
    fp32 = sizes.parameters if most else sizes.word_parameters
    larger = (sizes.parameters + 2 * fp32) / 1e6  # larger than an int8 file, smaller than this one
    size = f"prune.size_mb={larger}"
    check(planned(world, "alone", size, f"quantize.{setting}"))
    with pytest.raises(CompressError, match="expected less than the model has"):
        check(planned(world, "alone", size))


def check(plan: Plan) -> None:
    node: Any = next(node for node in plan.nodes if node.kind is prune.PRUNE)
    prune.check(plan, node)


def planted(files: Sequence[Path], length: int) -> list[float]:
    """Return latencies as if each byte of a model took the same time."""
    assert 4 < length <= 16
    return [file.stat().st_size / 1000 for file in files]


@pytest.mark.slow
def test_time_is_measured_once_and_the_budget_is_of_the_whole_model(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def times(files: Sequence[Path], length: int, show: Any) -> list[float]:
        measured.append(len(files))
        return planted(files, length)

    monkeypatch.setattr(layer_costs, "_cpu_times", times)
    with monkeypatch.context() as broken:
        broken.setattr(scores, "mask_gradients", lambda *words, **more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build_pruned(world, "alone", "prune.latency=0.9")
    (point,) = build_pruned(world, "alone", "prune.latency=0.9").info["points"]
    assert len(measured) == 1 and measured[0] > 6
    assert point["reached"] <= 0.9 and point["flops"] < 0.9
    with pytest.raises(CompressError, match=r"prune: latency: expected at least 0\.\d+, which one head in one layer"):
        build_pruned(world, "alone", "prune.latency=0.05")
