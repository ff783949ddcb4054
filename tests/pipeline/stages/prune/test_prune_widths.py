"""Heads and neurons set by the recipe instead of a budget. The teacher has 2 layers of 2 heads and 64 neurons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from default_suite import slow
from prune_runs import FILES, build_pruned, planned, request
from safetensors.numpy import load_file
from transformers import AutoModelForSequenceClassification

from compress.cli.plans import plan_documents, print_plans
from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.pipeline import run_all
from compress.pipeline.run import build_stage
from compress.pipeline.stages.prune import prune
from compress.pruning.scores import FisherScores
from compress.report import write_report
from compress.spec.stages import Prune

pytestmark = pytest.mark.end_to_end

TURNS = FILES["gradual"].replace("gradual", "turns")
WIDTHS_IN_TURNS = TURNS.replace("flops: 0.7", "heads: [1, 2], neurons: 48").replace("flops: 0.6", "neurons: [48, 16]")


def widths(sizes: Dimensions) -> list[tuple[int, int]]:
    if sizes.pruned is None:
        return [(sizes.heads, sizes.intermediate)] * sizes.layers
    return list(zip(map(len, sizes.pruned.heads), sizes.pruned.neurons, strict=True))


def outputs(model: Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {each.name: inputs[each.name] for each in session.get_inputs()})
    return np.asarray(logits)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        (["heads=[1, 2]", "neurons=[48, 16]"], [(1, 48), (2, 16)]),
        (["heads=[0, 1]", "neurons=[32, 0]", "score=obs"], [(0, 32), (1, 0)]),
        *slow(
            (["heads=1"], [(1, 64), (1, 64)]),
            (["neurons=[64, 16]", "repair=false"], [(2, 64), (2, 16)]),
            (["heads=2", "neurons=64"], [(2, 64), (2, 64)]),
        ),
    ],
)
def test_these_widths_are_left_and_every_file_of_the_model_works(
    world: Path, settings: list[str], left: list[tuple[int, int]]
) -> None:
    words = request(world, "alone", *(f"prune.{each}" for each in settings))
    (result,) = run_all(words)
    (record,) = result.pruning
    (point,) = record.points
    assert [(len(heads), neurons) for heads, neurons in zip(point.heads, point.neurons, strict=True)] == left
    assert record.budget == "widths" and point.budget == point.reached == pytest.approx(point.flops)
    folder = build_stage(words, "teacher-pruned").path
    sizes, whole = dimensions(read_config(folder), classes=2), planned(world, "alone").sizes["teacher"]
    assert widths(sizes) == left
    share = sizes.layers_flops(record.mean_length) / whole.layers_flops(record.mean_length)
    assert share == pytest.approx(point.reached)
    assert (result.final.precision, result.final.parameters) == ("int8", sizes.parameters)

    model: Any = load_classifier(folder, kind="classification", labels=("negative", "positive"), trained=True)
    ids = np.random.default_rng(0).integers(5, 64, (3, 9))
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    with torch.inference_mode():
        wanted = model(**{name: torch.from_numpy(each) for name, each in inputs.items()}).logits.numpy()
    files = {"fp32": ("model.onnx", 1e-5), "int8": ("model_quantized.onnx", 0.2)}
    for precision, (name, tolerance) in files.items():
        logits = outputs(build_stage(words, f"teacher-pruned-{precision}").path / name, inputs)
        assert np.abs(logits - wanted).max() < tolerance * np.abs(wanted).max()

    write_report([result], world / "report")
    rows = (world / "report/report.md").read_text().splitlines()
    assert any(f"| widths | {point.reached:.3g} |" in row for row in rows)


def test_layers_that_stay_alike_are_a_plain_checkpoint(world: Path) -> None:
    folder = build_pruned(world, "alone", "prune.neurons=32").path
    config = read_config(folder)
    assert config["intermediate_size"] == 32 and "pruned" not in config
    model, loading = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"] and not loading["mismatched_keys"]
    assert model.bert.encoder.layer[1].intermediate.dense.out_features == 32


def test_the_best_by_the_scores_stay(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted scores are independent: the loss of a set of units is their sum."""
    random = np.random.default_rng(2)
    losses = [random.permutation(units) + 1.0 for units in (2, 64, 2, 64)]
    planted = [FisherScores(torch.diag(torch.from_numpy(each).sqrt().float())) for each in losses]
    monkeypatch.setitem(prune._SCORES, "fisher", lambda job, model, data: (planted, 24))
    artifact = build_pruned(world, "alone", "prune.heads=[1, 2]", "prune.neurons=[16, 48]", "prune.repair=false")
    (point,) = artifact.info["points"]
    assert point["heads"] == [[int(losses[0].argmax())], [0, 1]]
    before, after = (
        load_file(each.path / "model.safetensors")
        for each in (build_stage(request(world, "alone"), "teacher"), artifact)
    )
    for layer, (count, loss) in enumerate(zip((16, 48), losses[1::2], strict=True)):
        name = f"bert.encoder.layer.{layer}.intermediate.dense.weight"
        best = np.sort(np.argsort(loss)[64 - count :])
        assert (after[name] == before[name][best]).all()


def test_the_plan_shows_them_and_the_sizes_that_they_leave(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("prune.heads=[1, 2]", "prune.neurons=[48, 16]")
    (document,) = plan_documents([planned(world, "alone", *words)], world / "runs")
    print_plans([document])
    shown = capsys.readouterr().out
    assert "heads [1, 2], neurons [48, 16], examples 24" in shown
    assert "2 x 32, 1–2 heads, FFN 16–48" in shown
    build_pruned(world, "alone", *words)
    (known,) = plan_documents([planned(world, "alone", *words)], world / "runs")
    assert known["models"] == document["models"]
    (document,) = plan_documents([planned(world, "alone", "prune.neurons=32")], world / "runs")
    assert document["models"]["teacher-pruned"]["architecture"] == "bert 2 x 32, 2 heads, FFN 32"


def test_the_key_has_the_widths_of_each_layer(world: Path) -> None:
    def key(*overrides: str) -> str:
        words = (f"prune.{each}" for each in overrides)
        return next(node.key for node in planned(world, "alone", *words).nodes if node.kind.name == "prune")

    assert key("heads=1") == key("heads=[1, 1]") == key("heads=1", "neurons=64")
    assert len({key(), key("heads=1"), key("heads=[1, 2]"), key("heads=[2, 1]"), key("neurons=16")}) == 5
    assert not {"heads", "neurons"} & Prune().model_dump().keys()  # a run made without these fields keeps its name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["heads=[1]"], r"stage prune: heads: expected one number, or a list of 2, one for each layer; found a list of 1$"),
        (["neurons=[]"], r"stage prune: neurons: expected one number, or a list of 2, .* found a list of 0$"),
        (["heads=3"], r"stage prune: heads: expected at most 2, as many as layer 1 has; found 3$"),
        (["neurons=[64, 80]"], r"stage prune: neurons\[1\]: expected at most 64, as many as layer 2 has; found 80$"),
        (["neurons=[16, 40]"], r"neurons\[1\]: expected a multiple of 16, or all 64 of layer 2; found 40; give 32 or 48$"),
        (["neurons=63"], r"stage prune: neurons: expected a multiple of 16, .*; found 63; give 48 or 64$"),
        (["heads=0"], r"stage prune: heads: expected a head in at least one layer, .*; found none; give a layer one$"),
        (["heads=[0, 0]", "neurons=16"], r"stage prune: heads: expected a head in at least one layer"),
        (["flops=0.5", "heads=1"], r"^--set prune.(flops|heads): expected a budget or widths, found flops beside heads; leave either out$"),
        (["size_mb=1", "heads=1", "neurons=16"], r"expected a budget or widths, found size_mb beside heads and neurons; leave"),
        (["heads=-1"], r"^--set prune.heads: expected a number at least 0 or a list, found the number -1$"),
        (["neurons=[16, true]"], r"^--set prune.neurons\[1\]: expected a whole number, found `true`$"),
    ],
)  # fmt: skip
def test_widths_that_do_not_fit_are_refused_before_anything_runs(
    world: Path, settings: list[str], message: str
) -> None:
    with pytest.raises(CompressError, match=message) as caught:
        planned(world, "alone", *(f"prune.{each}" for each in settings))
    assert "\n" not in str(caught.value)


def test_widths_behind_widths_are_held_against_what_these_leave(world: Path) -> None:
    (world / "turns.yaml").write_text(WIDTHS_IN_TURNS)
    (document,) = plan_documents([planned(world, "turns")], world / "runs")
    assert document["models"]["student-prune-more"]["architecture"] == "bert 2 x 32, 1–2 heads, FFN 16–48"
    with pytest.raises(CompressError, match=r"stage prune-more: neurons\[1\]: expected at most 48, .*; found 64$"):
        planned(world, "turns", "prune-more.neurons=[16, 64]")
    with pytest.raises(CompressError, match=r"stage prune-more: heads: expected at most 1, as many as layer 1 has"):
        planned(world, "turns", "prune-more.heads=2")


@pytest.mark.slow
def test_a_model_is_pruned_to_widths_in_turns(world: Path) -> None:
    (world / "turns.yaml").write_text(WIDTHS_IN_TURNS)
    (result,) = run_all(request(world, "turns"))
    before, after = (record.points[-1] for record in result.pruning)
    assert before.neurons == (48, 48) and after.neurons == (48, 16) and before.heads == after.heads
    assert widths(dimensions(read_config(build_stage(request(world, "turns"), "again").path), classes=2)) == [
        (1, 48),
        (2, 16),
    ]


def test_widths_behind_a_budget_are_refused(world: Path) -> None:
    message = (
        r"recipe turns, stage prune-more: heads: expected a model whose widths are known; found one that stage prune before it prunes to a "
        r"budget of flops; give that stage widths too, or this one a budget$"
    )
    (world / "turns.yaml").write_text(TURNS.replace("flops: 0.6", "heads: 1"))
    with pytest.raises(CompressError, match=message):
        planned(world, "turns")
    (world / "turns.yaml").write_text(TURNS.replace("flops: 0.7", "heads: 1"))
    assert planned(world, "turns").models[-1] == "student-int8"
