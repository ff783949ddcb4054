"""A student that learns a mix of its layers, from its card to the bundle and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretrained_toys import ALIKE, encoder_folder

from compress.bundle import ship, verify
from compress.errors import CompressError
from compress.models.dimensions import read_config
from compress.pipeline import Plan, Request, plan_all, run_all
from compress.report import write_report
from compress.results import read_result

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


def request(
    world: Path, stages: str = VECTORS, *, kind: str = "embedding", student: str = "mixing", method: str = "dynamic"
) -> Request:
    recipe = world / "mixed.yaml"
    recipe.write_text(RECIPE.format(stages=stages, student=world / f"{student}.yaml", method=method))
    options: dict[str, Any] = {"teacher": str(world / "encoder"), "precision": "fp32", "threads": 1, "bench": None}
    return Request((str(recipe),), (str(world / f"{kind}.yaml"),), **options, root=world / f"runs-{method}")


def planned(world: Path, *words: str, **more: Any) -> Plan:
    (plan,) = plan_all(request(world, *words, **more))
    return plan


def test_the_plan_says_so_and_the_key_holds_it(world: Path) -> None:
    mix, last = planned(world), planned(world, student="last")
    note = "student mixing: its vectors are made of a mix of the states of its embeddings and layers, which it learns"
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


@pytest.mark.parametrize(("stages", "method"), [(VECTORS, "dynamic"), (f"{VECTORS}\n{QAT}", "qat")])
def test_what_was_learnt_is_in_the_checkpoint_the_bundle_and_the_report(world: Path, stages: str, method: str) -> None:
    asked = request(world, stages, method=method)
    run_all(asked)
    (folder,) = asked.root.glob("mixed-*")
    result = read_result(folder)
    mixes = [stage.info["layer_mix"] for stage in result.stages if "layer_mix" in stage.info]
    mix, store = mixes[-1], asked.root / ".store"
    assert len(mix) == 3 and sum(mix) == pytest.approx(1) and max(mix) - min(mix) > 0.01
    config = read_config(store / json.loads((folder / "checkpoints.json").read_text())["student"])
    assert config["sentence_layers"] == mix
    out = world / f"bundle-{method}"
    with pytest.raises(CompressError, match="vectors are a mix of the states of its embeddings and 2 layers, and tr"):
        ship(folder, out, store=store, with_checkpoint=True)
    ship(folder, out, store=store)
    verify(out).raise_if_failed()
    with np.load(folder / "predictions.npz") as file:
        fp32, int8 = (file[f"student-{precision}/dev"][:, 1:] for precision in ("fp32", "int8"))
    assert (fp32 * int8).sum(axis=1).mean() / 2 > 0.95
    write_report([result], world / f"report-{method}")
    lines = (world / f"report-{method}" / "report.md").read_text().splitlines()
    (line,) = [line for line in lines if "a mix of its states" in line]
    assert line.endswith(" of layer 2.") and " of the embeddings, " in line
