"""A family without a fast graph and with parts of its record missing: its plan, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.export.fast.graph import ACTIVATIONS
from compress.models.checkpoints.pretrained import load_pretrained
from compress.models.families import FAMILIES
from compress.models.families.parts import Attention, Heads
from compress.models.fast_graph import FAST_ACTIVATIONS
from compress.models.features.named import compute_features
from compress.models.masked_lm import has_masked_lm_head, new_masked_lm_head
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.results.resolved import resolved_recipe

LEFT_OUT = {"heads": Heads(), "student_families": (), "as_student": None}


def change_bert(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    monkeypatch.setitem(FAMILIES, "bert", replace(FAMILIES["bert"], **fields))


class World:
    def __init__(self, folder: Path, teacher: Path) -> None:
        self.folder, self.teacher = folder, teacher
        (folder / "fewer.yaml").write_text("name: fewer\ntitle: Fewer\nlayers: 1\n")

    def plan(self, recipe: str, *overrides: str, student: str | None = None, corpus: bool = False) -> Plan:
        request = Request(
            (recipe,),
            (str(self.folder / "task.yaml"),),
            teacher=str(self.teacher),
            student=student and str(self.folder / student),
            corpus=(str(self.folder / "text.txt"),) if corpus else (),
            overrides=overrides,
        )
        return plan_all(request)[0]

    def refused(self, recipe: str, *overrides: str, **options: Any) -> str:
        with pytest.raises(CompressError) as caught:
            self.plan(recipe, *overrides, **options)
        assert caught.value.exit_code == 2
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> World:
    return World(tmp_path, encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film .\n" * 50))


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make BERT a family with parts of its record missing."""
    layers = replace(FAMILIES["bert"].layers, parts={})
    change_bert(monkeypatch, layers=layers, fast_graph=False, **LEFT_OUT)


def graphs(plan: Plan) -> dict[str, str]:
    return {node.id: node.spec.model_dump()["graph"] for node in plan.nodes if node.kind.name == "export"}


def test_activations_are_those_that_the_fast_graph_has_operators_for():
    assert set(FAST_ACTIVATIONS) == set(ACTIVATIONS)


def test_a_known_family_has_the_fast_graph_and_nothing_is_said(world: World):
    by_default, fast = world.plan("int8"), world.plan("int8", "export.graph=fast")
    assert graphs(by_default) == {"teacher-fp32": "fast"}
    assert by_default.notes == ()
    assert [node.key for node in by_default.nodes] == [node.key for node in fast.nodes]
    assert by_default.name == fast.name
    assert resolved_recipe(by_default) == resolved_recipe(fast)


@pytest.mark.usefixtures("unknown")
def test_another_has_the_plain_graph_and_the_plan_says_why(world: World):
    plan = world.plan("int8")
    assert graphs(plan) == {"teacher-fp32": "plain"}
    (note,) = plan.notes
    before = "teacher: its ONNX graph is the plain one, from torch's exporter, with the same answers: the fast graph is for distilbert, "
    assert note.startswith(before)
    assert (
        ", and this bert is of none of them. It is slower than a fast one, because it computes the last layer" in note
    )
    plain = world.plan("int8", "export.graph=plain")
    assert (plan.name, [node.key for node in plan.nodes]) == (plain.name, [node.key for node in plain.nodes])


@pytest.mark.usefixtures("unknown")
def test_each_model_has_its_own_graph(
    world: World, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path
):
    student = Path(shutil.copytree(tiny_checkpoint("distilbert"), tmp_path / "student"))
    toy_tokenizer.save(str(student / "tokenizer.json"))
    plan = world.plan("logits", student=str(student))
    assert graphs(plan) == {"teacher-fp32": "plain", "student-fp32": "fast"}
    assert {"export": {"graph": "auto", "opset": 20}} in resolved_recipe(plan)["stages"]


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize(
    ("recipe", "overrides", "message"),
    [
        (
            "distilbert",
            (),
            "student fewer: no student can start from the weights of a teacher that is bert; a pre-trained",
        ),
        ("tinybert-small", (), "(recipe logits, --student minilm-l6 or DIR)"),
        ("bert-pretrain", (), "stage pretrain, teacher teacher: masked_lm: the masked-LM head of a bert is not known"),
    ],
)
def test_what_needs_its_parts_is_refused(world: World, recipe: str, overrides: tuple[str, ...], message: str):
    student = None if recipe == "bert-pretrain" else "fewer.yaml"
    assert message in world.refused(recipe, *overrides, student=student, corpus=recipe != "distilbert")


def test_training_for_int8_needs_the_fast_graph(world: World, monkeypatch: pytest.MonkeyPatch):
    change_bert(monkeypatch, fast_graph=False)
    (world.folder / "own.yaml").write_text("name: own\ntitle: Own\narchitecture: bert\nlayers: 1\n")
    message = world.refused("distilbert-int8-qat", student="own.yaml")
    assert "this bert is of none of them: leave it out with --set quantize_aware.enabled=false" in message
    changed = ("quantize_aware.enabled=false", "quantize.method=smoothquant")  # as the error suggests
    assert graphs(world.plan("distilbert-int8-qat", *changed, student="own.yaml"))["student-fp32"] == "plain"


def test_attention_that_cannot_be_read_is_no_loss(world: World, monkeypatch: pytest.MonkeyPatch):
    change_bert(monkeypatch, attention=Attention(readable=False))
    (world.folder / "own.yaml").write_text("name: own\ntitle: Own\narchitecture: bert\nlayers: 1\n")
    message = world.refused("minilm", student="own.yaml")
    assert "relation_kl: the attention of a bert cannot be read; leave the loss out, or choose recipe logits" in message
    from transformers import AutoModel

    model, _ = load_pretrained(AutoModel, world.teacher, "an encoder")
    assert model.config._attn_implementation == "eager"
    ids = torch.ones(1, 4, dtype=torch.long)
    batch = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids * 0}
    with pytest.raises(CompressError, match="the attention of a bert cannot be read"):
        compute_features(model, batch, ["scores[0]"])


def test_documents_that_cannot_be_kept_apart_are_refused(world: World, monkeypatch: pytest.MonkeyPatch):
    change_bert(monkeypatch, attention=Attention(separates_documents=False))
    for recipe, stage in (("bert-pretrain", "pretrain"), ("tinybert-small", "masked_lm")):
        student = None if recipe == "bert-pretrain" else "fewer.yaml"
        message = world.refused(recipe, f"{stage}.attention=document", student=student, corpus=True)
        assert f"stage {stage}: attention: a bert cannot keep the documents of a sequence apart" in message


@pytest.mark.usefixtures("unknown")
def test_a_masked_lm_head_that_is_not_known(world: World):
    assert not has_masked_lm_head(world.teacher)
    with pytest.raises(CompressError, match="masked-LM head of a bert is not known"):
        new_masked_lm_head(world.teacher)


@pytest.mark.usefixtures("unknown")
def test_a_card_of_a_form_that_no_student_is_made_in(world: World):
    (world.folder / "own.yaml").write_text("name: own\ntitle: Own\narchitecture: bert\nlayers: 1\n")
    message = world.refused("distilbert", student="own.yaml")
    assert "architecture: a student `bert` can only be pre-trained (`init: pretrained`)" in message
