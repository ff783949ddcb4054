"""A student that learns a mix of its layers, from its card to the bundle and the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretrained_toys import ALIKE, encoder_folder
from transformers import AutoModel

from compress.bundle import ship, verify
from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier, load_tokenizer, save_checkpoint
from compress.models.dimensions import read_config
from compress.models.sentence_encoders.layer_mix import learnt_mix, start_mix
from compress.pipeline import Plan, Request, plan_all, run_all
from compress.report import write_report
from compress.report.text.numbers import percent
from compress.results import Result, read_result
from compress.runtime import Embedder

CARD = "name: mixing\ntitle: Mixing\nlayers: 2\nvector_layers: mix\n"
RECIPE = """
name: mixed
title: Mixed
description: A student of mixed layers.
teacher: minilm-l6
student: {student}
stages:
  - finetune
{stages}
  - export
  - quantize: {{method: {method}}}
"""
VECTORS = "  - distill: {max_steps: 8, batch_size: 8, learning_rate: 5.0e-3, epochs: 1}"
QAT = "  - quantize_aware: {max_steps: 3, batch_size: 8}"
LAYERS = "  - distill: {max_steps: 3, losses: [{name: hidden_mse}]}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    encoder_folder(folder / "encoder", "bert", layers=3, seed=9)
    (folder / "mixing.yaml").write_text(CARD)
    (folder / "last.yaml").write_text(CARD.replace("vector_layers: mix\n", "").replace("mixing", "last"))
    for kind in ("embedding", "regression"):
        (folder / f"{kind}.yaml").write_text(ALIKE.format(kind=kind))
    return folder


def request_of(
    world: Path, stages: str = VECTORS, *, kind: str = "embedding", student: str = "mixing", method: str = "dynamic"
) -> Request:
    recipe = world / "mixed.yaml"
    recipe.write_text(RECIPE.format(stages=stages, student=world / f"{student}.yaml", method=method))
    options: dict[str, Any] = {"teacher": str(world / "encoder"), "precision": "fp32", "threads": 1, "bench": None}
    return Request((str(recipe),), (str(world / f"{kind}.yaml"),), **options, root=world / f"runs-{method}")


def planned(world: Path, *words: str, **more: Any) -> Plan:
    (plan,) = plan_all(request_of(world, *words, **more))
    return plan


def test_the_plan_says_so_and_the_key_holds_it(world: Path) -> None:
    mix, last = planned(world), planned(world, student="last")
    note = "student mixing: its vectors are a learned mix of the states of its embeddings and layers"
    assert note in mix.notes and not any("mix of the states" in line for line in last.notes)
    keys = [{node.kind.name: node.key for node in plan.nodes}["distill"] for plan in (mix, last)]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("stages", "kind", "message"),
    [
        (VECTORS, "regression", "student mixing: vector_layers: found mix, which is for vectors, and alike is a regr"),
        (LAYERS, "embedding", "no stage has a loss on its vectors, so nothing would teach it the mix"),
    ],
)
def test_a_mix_that_nothing_teaches_is_refused(world: Path, stages: str, kind: str, message: str) -> None:
    with pytest.raises(CompressError, match=message):
        planned(world, stages, kind=kind)


@pytest.mark.slow
@pytest.mark.parametrize(("stages", "method"), [(f"{VECTORS}\n{QAT}", "qat"), (VECTORS, "dynamic")])
def test_what_was_learnt_is_in_the_checkpoint_the_bundle_and_the_report(world: Path, stages: str, method: str) -> None:
    request = request_of(world, stages, method=method)
    run_all(request)
    (folder,) = request.root.glob("mixed-*")
    result = read_result(folder)
    mixes = [stage.info["layer_mix"] for stage in result.stages if "layer_mix" in stage.info]
    store, keys = request.root / ".store", json.loads((folder / "checkpoints.json").read_text())
    students = [store / key for name, key in keys.items() if name != "teacher"]
    assert mixes == [read_config(student)["sentence_layers"] for student in students], (
        "each training says what it learnt"
    )
    for mix in mixes:
        assert len(mix) == 3 and sum(mix) == pytest.approx(1) and max(mix) - min(mix) > 0.01
    out = world / f"bundle-{method}"
    with pytest.raises(CompressError, match="vectors are a mix of the states of its embeddings and 2 layers, and tr"):
        ship(folder, out, store=store, with_checkpoint=True)
    ship(folder, out, store=store)
    assert [check.detail for check in verify(out).checks if not check.passed] == []
    check_embedder(out, students[-1])
    with np.load(folder / "predictions.npz") as file:
        fp32, int8 = (file[f"student-{precision}/dev"][:, 1:] for precision in ("fp32", "int8"))
    assert (fp32 * int8).sum(axis=1).mean() / 2 > 0.95
    first, _, last = map(percent, mixes[-1])
    (line,) = mix_lines(world / f"report-{method}", result)
    assert line.endswith(f" {last} of layer 2.") and f" {first} of the embeddings, " in line
    several = result, result.model_copy(update={"seed": 1})
    assert mix_lines(world / f"reports-{method}", *several) == [f"{line[:-1]} (seed 0)."], (
        "which run's weights they are"
    )


def mix_lines(out: Path, *results: Result) -> list[str]:
    write_report(results, out)
    return [line for line in (out / "report.md").read_text().splitlines() if "a mix of its states" in line]


def check_embedder(bundle: Path, checkpoint: Path) -> None:
    """Check the runtime's vectors against transformers' model with the layer weights of its config, for a text alone and padded
    beside longer ones."""
    texts = ["the boat", "a book costs little and the house is old", "the car is near the river"]
    model = AutoModel.from_pretrained(checkpoint).eval()
    tokenizer, weights = load_tokenizer(checkpoint), read_config(checkpoint)["sentence_layers"]
    wanted = []
    for text in texts:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text).ids]), output_hidden_states=True).hidden_states
        mean = np.tensordot(weights, [each[0].numpy() for each in states], axes=1).mean(axis=0)
        wanted.append(mean / np.linalg.norm(mean))
    for options in ({}, {"batch_size": 1}):
        np.testing.assert_allclose(
            Embedder(bundle, precision="fp32").embed(texts, **options), wanted, rtol=0, atol=1e-5
        )
    assert ((Embedder(bundle).embed(texts) * wanted).sum(axis=1) > 0.95).all()


def test_a_checkpoint_with_a_mix_is_a_teacher_of_vectors_and_learns_no_mix_for_labels(
    world: Path, tmp_path: Path
) -> None:
    model = AutoModel.from_pretrained(world / "encoder")
    start_mix(model)
    save_checkpoint(model, load_tokenizer(world / "encoder"), tmp_path)
    assert learnt_mix(load_classifier(tmp_path, kind="embedding", labels=(), trained=True)) == [0.25] * 4
    assert learnt_mix(load_classifier(tmp_path, kind="regression", labels=(), trained=False)) is None
    (plan,) = plan_all(replace(request_of(world), teacher=str(tmp_path)))
    assert (
        f"teacher {tmp_path.name}: its vectors are made of a mix of the states of its embeddings and 3 layers"
        in plan.notes
    )
