"""A teacher whose vectors come from chosen layers, from its card to the bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from default_suite import slow
from pretrained_toys import ALIKE, encoder_folder

from compress.bundle import ship, verify
from compress.errors import CompressError
from compress.models.dimensions import read_config
from compress.pipeline import Plan, Request, plan_all, run_all
from compress.pipeline.plan.students import CHOSEN_LAYERS

pytestmark = pytest.mark.end_to_end

CARD = "name: layered\ntitle: Layered\nlicence: Apache-2.0\ncheckpoint: {{path: encoder}}\nlayers: {layers}\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    encoder_folder(folder / "encoder", "bert", layers=3, seed=8)
    for kind in ("embedding", "regression"):
        (folder / f"{kind}.yaml").write_text(ALIKE.format(kind=kind))
    return folder


def request(world: Path, layers: int | str, *, recipe: str = "int8", kind: str = "embedding", **more: Any) -> Request:
    card = world / "layered.yaml"
    card.write_text(CARD.format(layers=layers))
    options: dict[str, Any] = {"teacher": str(card), "precision": "fp32", "threads": 1, "bench": None}
    return Request((recipe,), (str(world / f"{kind}.yaml"),), **options, root=world / "runs", **more)


def planned(world: Path, layers: int | str, **more: Any) -> Plan:
    (plan,) = plan_all(request(world, layers, **more))
    return plan


def test_the_plan_says_what_is_cut_and_the_key_holds_it(world: Path) -> None:
    last, second, mean = (planned(world, layers) for layers in ("last", 2, "last-2"))
    assert [plan.sizes["teacher"].layers for plan in (last, second, mean)] == [3, 2, 3]
    assert len({plan.nodes[0].key for plan in (last, second, mean)}) == 3
    assert not any("its vectors are" in note for note in last.notes)
    cut = "its vectors are those of layer 2; later layers are cut off, which leaves an encoder of 2 layers"
    assert f"teacher layered: {cut}" in second.notes
    assert "teacher layered: its vectors are made of the mean of its last 2 layers' states" in mean.notes


@pytest.mark.parametrize(
    ("layers", "more", "message"),
    [
        (2, {"kind": "regression"}, "layers: found 2, which is for vectors, and alike is a regression task"),
        (4, {}, "teacher layered: layers: found 4, and the checkpoint has 3 layers"),
        ("mix", {}, "so it has no mix to learn; a student has one"),
    ],
)
def test_layers_that_nobody_reads_are_refused(
    world: Path, layers: int | str, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompressError, match=message):
        planned(world, layers, **more)


def test_a_pre_trained_student_has_all_its_layers(world: Path) -> None:
    student = world / "student.yaml"
    student.write_text(f"name: student\ntitle: Student\ninit: pretrained\ncheckpoint: {world / 'layered.yaml'}\n")
    request_of_student = replace(
        request(world, 2, recipe="logits", student=str(student)), teacher=str(world / "encoder")
    )
    with pytest.raises(CompressError, match="student layered: layers: found 2, which is for teachers; leave it out"):
        plan_all(request_of_student)


def test_a_stage_that_trains_on_all_layers_is_refused(world: Path) -> None:
    text = world / "text.txt"
    text.write_text("\n\n".join(f"the old film is good in town {n} ." for n in range(40)))
    with pytest.raises(CompressError, match="the stage `masked_lm` trains on the teacher with all its layers"):
        planned(world, 2, recipe="distilbert-general", student="distil-1l", corpus=(str(text),))


def test_vectors_of_several_layers_do_not_tell_which_of_them_matter(world: Path) -> None:
    card = world / "chosen.yaml"
    card.write_text("name: chosen\ntitle: Chosen\nlayers: 1\ninit: prune\n")
    own: dict[str, Any] = {"recipe": "distilbert", "student": str(card)}
    wanted = (
        "init: prune drops layers one by one, and the vectors of teacher layered are made of the mean of its last 2"
    )
    with pytest.raises(CompressError, match=wanted):
        planned(world, "last-2", **own)
    assert any(node.kind.name == CHOSEN_LAYERS for node in planned(world, 2, **own).nodes)
    path = world / "encoder" / "config.json"
    text = path.read_text()
    try:
        for kind, several in (("embedding", 1), ("regression", 2)):  # a classifier reads only the last layer's states
            path.write_text(json.dumps({**json.loads(text), "sentence_layers": several}))
            assert any(node.kind.name == CHOSEN_LAYERS for node in planned(world, "last", kind=kind, **own).nodes)
    finally:
        path.write_text(text)


@pytest.mark.parametrize("layers", ["last-2", *slow(2)])
def test_the_bundle_has_the_vectors_of_the_layers(world: Path, layers: int | str) -> None:
    root = world / f"runs-{layers}"
    run_all(replace(request(world, layers), root=root))
    (folder,) = root.glob("int8-*")
    checkpoint = root / ".store" / json.loads((folder / "checkpoints.json").read_text())["teacher"]
    config = read_config(checkpoint)
    assert (config["num_hidden_layers"], config.get("sentence_layers", 1)) == ((2, 1) if layers == 2 else (3, 2))
    store, out = root / ".store", world / f"bundle-{layers}"
    if layers == "last-2":
        with pytest.raises(CompressError, match="sentence_layers: vectors are the mean of its last 2 layers' states"):
            ship(folder, out, store=store, with_checkpoint=True)
        assert not out.exists()
    ship(folder, out, store=store, with_checkpoint=layers == 2)
    assert [check.detail for check in verify(out).checks if not check.passed] == []
    with np.load(folder / "predictions.npz") as file:
        fp32, int8 = file["teacher-fp32/dev"][:, 1:], file["teacher-int8/dev"][:, 1:]
    assert (fp32 * int8).sum(axis=1).mean() / 2 > 0.95
