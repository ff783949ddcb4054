"""Every stage that computes with a model, on a simulated GPU: no tensor is left on the CPU, and a step synchronizes with the GPU
once, to read its losses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import slow
from gpu_runs import FORWARDS, LOGGED, SHORT, STUDENT, Recipe, build, gpu_world
from pretend_cuda import waits
from safetensors.torch import load_file
from tokenizers import Tokenizer

from compress.augment import MaskedLmProposer
from compress.losses import LOSSES
from compress.models.features import predict
from compress.pipeline.plan.students import CHOSEN_LAYERS
from compress.pipeline.stages.registry import STAGES
from compress.pruning import layerwise, obs, repair, scores

WHOLE = "epochs: 1, batch_size: 16, dropout: 0.0"  # the teacher predicts once, before training
ON_TEXT = f"{SHORT}, max_length: 16"
LAYER_LOSSES = "{name: hidden_mse}, {name: embedding_mse}, {name: attention_mse}, {name: relation_kl}"
RECIPES: dict[str, Recipe] = {
    "layers": (
        f"""
  - pretrain: {{{ON_TEXT}, losses: [{{name: masked_lm, whole_words: true}}, {{name: sentence_order}}]}}
  - finetune: {{{SHORT}}}
  - general: {{{ON_TEXT}, attention: document, losses: [{LAYER_LOSSES}]}}
  - augment: {{copies: 2}}
  - distill: {{{SHORT}, losses: [{LAYER_LOSSES}]}}
  - distill: {{name: task, {SHORT}, losses: [{{name: soft_cross_entropy}}, {{name: hard_label}}]}}
  - quantize_aware: {{{SHORT}, ranges: learned}}""",
        "student-qat",
        STUDENT,
    ),
    "copied": (
        f"""
  - finetune: {{{SHORT}, micro_batch_size: 3}}
  - masked_lm: {{{ON_TEXT}, enabled: true}}
  - general: {{{ON_TEXT}, losses: [{{name: masked_soft_target}}, {{name: masked_lm}}, {{name: hidden_cosine}}]}}
  - augment: {{copies: 1}}
  - distill: {{{WHOLE}, losses: [{{name: soft_target}}, {{name: hard_label}}, {{name: hidden_cosine}}]}}
  - prune: {{flops: 0.8, examples: 24}}
  - distill: {{name: recover, {SHORT}, losses: [{{name: hard_label}}]}}
  - prune: {{name: less, flops: 0.5, examples: 24, score: obs}}
  - quantize_aware: {{{SHORT}, ranges: moving_average}}""",
        "student-qat",
        "name: narrow\ntitle: S\narchitecture: distilbert\nlayers: 1\n",
    ),
    "next": (
        f"""
  - pretrain: {{{ON_TEXT}, losses: [{{name: masked_lm}}, {{name: next_sentence}}]}}
  - finetune: {{{SHORT}}}
  - distill: {{{WHOLE}, losses: [{{name: soft_target}}]}}""",
        "student",
        "name: narrow\ntitle: S\narchitecture: albert\nlayers: 2\ninit: convert\nalbert: {embedding: 16, share: all, block: fit}\n",
    ),
    "logits": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: hard_label}}]}}""",
        "student",
        None,
    ),
    "static": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: hard_label}}]}}""",
        "student",
        "name: narrow\ntitle: Static\narchitecture: static\nhidden: 16\ninit: static\n",
    ),
    "ranked": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: margin_mse}}, {{name: hard_label}}]}}
  - prune: {{examples: 24}}""",
        "student-pruned",
        STUDENT,
    ),
    "chosen": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: hidden_cosine}}, {{name: hard_label}}]}}""",
        "student",
        "name: narrow\ntitle: S\narchitecture: distilbert\nlayers: 1\ninit: prune\nexamples: 8\n",
    ),
    "asked": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{WHOLE}, losses: [{{name: soft_target}}, {{name: hard_label}}]}}""",
        "student",
        STUDENT,
    ),
    "vectors": (
        f"""
  - finetune: {{}}
  - distill: {{{SHORT.replace("2", "4", 1)}, losses: [{{name: soft_target}}, {{name: similarity_mse}}]}}
  - prune: {{examples: 24, score: obs}}""",
        "student-pruned",
        "name: narrow\ntitle: S\narchitecture: distilbert\nlayers: 1\n",
    ),
}


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    return gpu_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer)


PRECISIONS = [("layers", "fp32"), ("static", "bf16"), ("ranked", "bf16"), ("chosen", "fp32"), ("asked", "fp32")]
PRECISIONS += [("vectors", "fp32"), *slow(("copied", "fp32"), ("next", "bf16"), ("logits", "bf16"))]


@pytest.mark.parametrize(("name", "precision"), PRECISIONS)
def test_every_step_stays_on_the_gpu_and_waits_once(world: Path, name: str, precision: str) -> None:
    trace = build(world, name, RECIPES[name], precision=precision)
    assert [step for step in trace.steps if step != LOGGED] == []
    assert len(trace.steps) == sum(map(len, trace.losses.values())) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), PRECISIONS)
def test_its_losses_are_those_of_the_cpu(world: Path, name: str, precision: str) -> None:
    trace, expected = (build(world, name, RECIPES[name], precision=precision, gpu=gpu) for gpu in (True, False))
    assert trace.losses.keys() == expected.losses.keys()
    tolerance = 1e-4 if precision == "fp32" else 0.03
    for label, steps in trace.losses.items():
        for on_gpu, on_cpu in zip(steps, expected.losses[label], strict=True):
            # On a GPU, masks and attention sum the same numbers in another order. KL of near equals is a difference.
            assert on_gpu == pytest.approx(on_cpu, rel=tolerance, abs=tolerance / 100), label


@pytest.mark.parametrize("name", ["ranked", *slow("copied", "vectors")])
def test_pruning_computes_on_the_gpu_and_leaves_what_it_leaves_on_the_cpu(world: Path, name: str) -> None:
    built, devices = {}, {}
    for gpu in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            devices[gpu] = devices_of_forwards(patch)
            build(world, name, RECIPES[name], gpu=gpu)
        manifests = [path.parent for path in (world / f"runs-{gpu}" / ".store").glob("*/manifest.json")]
        folders = {json.loads((path / "manifest.json").read_text())["describe"]["label"]: path for path in manifests}
        built[gpu] = {label: path for label, path in folders.items() if label.startswith("prune")}
    assert (devices[True], devices[False]) == ({"cuda"}, {"cpu"})
    assert built[True].keys() == built[False].keys() != set()
    for label, path in built[True].items():
        weights, expected = (load_file(each / "model.safetensors") for each in (path, built[False][label]))
        assert weights.keys() == expected.keys()
        for key, value in weights.items():
            assert torch.allclose(value, expected[key], rtol=1e-3, atol=1e-3), (label, key)


@pytest.mark.slow
def test_layers_are_chosen_on_the_gpu_as_on_the_cpu(world: Path) -> None:
    infos, compute = dict[bool, dict[str, Any]](), predict.compute_features
    for gpu in (True, False):
        devices = set[str]()

        def noted(model: Any, batch: Any, wanted: Any, devices: set[str] = devices) -> Any:
            devices.update(each.device.type for each in (*batch.values(), *model.parameters()))
            return compute(model, batch, wanted)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(predict, "compute_features", noted)
            build(world, "chosen", RECIPES["chosen"], gpu=gpu, until=CHOSEN_LAYERS)
        assert devices == {"cuda" if gpu else "cpu"}
        manifests = [json.loads(path.read_text()) for path in (world / f"runs-{gpu}").glob(".store/*/manifest.json")]
        (infos[gpu],) = [each["info"] for each in manifests if "copied_layers" in each["info"]]
    assert infos[True]["copied_layers"] == infos[False]["copied_layers"]
    assert infos[True]["alone"] == pytest.approx(infos[False]["alone"], rel=1e-2)  # the teachers differ by rounding


def devices_of_forwards(patch: pytest.MonkeyPatch) -> set[str]:
    """Record the devices of the layers that pruning runs, and of the losses whose gradients it takes."""
    devices, run, loss = set[str](), layerwise.layer_states, scores._summed_loss

    def states(model: Any, number: int, inputs: Any) -> Any:
        devices.add(inputs.states.device.type)
        return run(model, number, inputs)

    def summed(*arguments: Any) -> Any:
        summed = loss(*arguments)
        devices.add(summed.device.type)
        return summed

    patch.setattr(repair, "layer_states", states)
    patch.setattr(obs, "layer_states", states)
    patch.setattr(scores, "_summed_loss", summed)
    return devices


def test_all_stages_that_compute_and_all_losses_are_among_them() -> None:
    stages = "".join(recipe[0] for recipe in RECIPES.values())
    kinds = {name for name, kind in STAGES.items() if kind.trains} | FORWARDS
    assert {kind for kind in kinds if f"- {kind}: " not in stages} == set()
    assert {loss for loss in LOSSES if f"name: {loss}" not in stages} == set()


def test_augmentation_waits_once_a_batch(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read the ranked words."""
    counts, rank = list[Counter[str]](), MaskedLmProposer._rank_batch

    def counted(*arguments: Any) -> Any:
        with waits() as each:
            ranked = rank(*arguments)
        counts.append(each)
        return ranked

    monkeypatch.setattr(MaskedLmProposer, "_rank_batch", counted)
    build(world, "copied", RECIPES["copied"], until="augmented")
    assert counts
    assert [each for each in counts if each != {"masked.py:_rank_batch to cpu": 1}] == []
