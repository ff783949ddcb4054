"""The stages of a plan, those that it leaves out with a note, and what the keys depend on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.results.resolved import resolved_recipe
from compress.spec.recipe import Recipe

STUDENT = "name: narrow\ntitle: narrow\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: {heads}\ninit: random\n"
FIELDS = ("keep=best", "evaluate_every=0.5")  # read where checkpoints are scored


class Case:
    """A checkpoint without heads, plain text, a task and a student; and plans of the recipe `tinybert`."""

    def __init__(self, folder: Path, checkpoint: Path, tokenizer: Tokenizer) -> None:
        self.folder = folder
        self.teacher = encoder_world(folder, checkpoint, tokenizer, text="the film is good .\n" * 50)
        self.student(heads=2)

    def student(self, *, heads: int) -> None:
        (self.folder / "narrow.yaml").write_text(STUDENT.format(heads=heads))

    def plan(self, *overrides: str, corpus: bool = True, **options: Any) -> Plan:
        request = Request(
            ("tinybert",),
            (str(self.folder / "task.yaml"),),
            teacher=str(self.teacher),
            student=str(self.folder / "narrow.yaml"),
            corpus=(str(self.folder / "text.txt"),) if corpus else (),
            overrides=overrides,
            **options,
        )
        return plan_all(request)[0]


@pytest.fixture
def case(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Case:
    return Case(tmp_path, tiny_checkpoint("bert"), toy_tokenizer)


def labels(plan: Plan) -> list[str]:
    return [node.label for node in plan.nodes]


def test_every_stage_in_its_order_and_what_it_is_made_from(case: Case):
    plan = case.plan()
    assert labels(plan) == [
        "finetune teacher",
        "export teacher-fp32",
        "tokenize text",
        "masked_lm masked-lm",
        "general encoder",
        "augment augmented",
        "distill intermediate",
        "distill prediction",
        "export student-fp32",
        "quantize student-int8",
    ]
    inputs = {node.id: node.inputs for node in plan.nodes}
    assert inputs["augmented"] == {"masked_lm": "masked-lm"}
    assert inputs["intermediate"] == {"teacher": "teacher", "encoder": "encoder", "augmented": "augmented"}
    assert inputs["prediction"] == {"teacher": "teacher", "student": "intermediate", "augmented": "augmented"}
    assert inputs["student-fp32"] == {"student": "prediction"}
    assert plan.checkpoint("student") == "prediction"
    assert plan.notes == ()


def test_without_text_what_needs_it_is_left_out_and_said(case: Case):
    plan = case.plan(corpus=False)
    assert not {"text", "masked-lm", "encoder"} & plan.keys.keys()
    assert plan.notes == (
        "general distillation is left out: no plain text was given; add it with --corpus PATH",
        "student narrow starts from random weights, which the texts of one task teach little: without plain text, better choose a "
        "student that starts from its teacher's weights (in its card, init: copy, project or convert)",
        "augment: teacher teacher has no masked-LM head and none was trained; "
        "all candidates are neighbours in the embedding table",
    )


def test_a_task_that_is_nearly_another_is_noted_and_others_are_not(case: Case):
    plan = case.plan("prediction.per_task.sts2.epochs=1", "prediction.per_task.reviews.epochs=1")
    message = "prediction: per_task gives `sts2` settings of its own; did you mean `stsb` or `sst2`?"
    assert [note for note in plan.notes if "per_task" in note] == [message]


@pytest.mark.parametrize("stage", ["general", "masked_lm"])
def test_a_stage_that_is_asked_for_without_text_is_a_mistake(case: Case, stage: str):
    with pytest.raises(
        CompressError, match=rf"recipe tinybert, stage {stage}: no plain text was given; add it with --corpus"
    ):
        case.plan(f"{stage}.enabled=true", corpus=False)


@pytest.mark.parametrize("stage", ["general", "augment", "intermediate", "prediction"])
def test_every_stage_can_be_switched_off(case: Case, stage: str):
    node_id = {"general": "encoder", "augment": "augmented"}.get(stage, stage)
    plan = case.plan(f"{stage}.enabled=false")
    assert node_id not in plan.keys
    assert all(node_id not in node.inputs.values() for node in plan.nodes)
    assert stage not in [next(iter(s.values())).get("name", next(iter(s))) for s in resolved_recipe(plan)["stages"]]


def test_no_distill_stage_at_all_is_no_student(case: Case):
    with pytest.raises(CompressError, match="every distill stage is switched off, so there is no student"):
        case.plan("intermediate.enabled=false", "prediction.enabled=false")


def test_heads_that_cannot_be_matched_are_found_at_once_with_the_ways_out(case: Case):
    case.student(heads=4)
    with pytest.raises(CompressError) as caught:
        case.plan()
    message = str(caught.value)
    assert "recipe tinybert, stage general" in message
    assert "narrow" in message
    assert "4" in message
    assert "another student card" in message
    assert "relation_kl" in message
    relations = "losses=[{name: relation_kl}]"
    assert case.plan(f"general.{relations}", f"intermediate.{relations}").notes == ()


def test_a_loss_of_classes_has_no_place_on_plain_text(case: Case):
    with pytest.raises(CompressError, match="plain text has no classes, which hard_label compares; choose others"):
        case.plan("general.losses=[{name: hard_label}]")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("intermediate.name=student",), "a stage is called student, which plans use for something else"),
        (("intermediate.name=prediction",), "give each of several stages of a kind a `name` of its own"),
        (("augment.per_task={toy: {enabled: false}}",), "per_task.toy.enabled: unknown key"),
        (("prediction.losses=[{name: hidden_cosine}]",), "hidden_cosine needs equal widths: the student has 16"),
    ],
)
def test_what_could_not_work_is_refused(case: Case, overrides: tuple[str, ...], message: str):
    with pytest.raises(CompressError, match=re.escape(message)):
        case.plan(*overrides)


def test_stages_that_serve_a_distill_stage_need_one(case: Case):
    recipe = case.folder / "lone.yaml"
    recipe.write_text("name: lone\ntitle: lone\nstages: [finetune, augment, export]\n")
    with pytest.raises(CompressError, match="`augment` is for a `distill` stage, and there is none"):
        plan_all(Request((str(recipe),), (str(case.folder / "task.yaml"),), teacher=str(case.teacher)))


def test_the_seed_of_what_comes_first_can_be_shared(case: Case):
    own, shared = (case.plan(seeds=(1,), base_seed=base).keys for base in (None, 0))
    first = case.plan(seeds=(0,)).keys
    before = {"teacher", "masked-lm", "encoder", "augmented", "text", "teacher-fp32"}
    assert {name for name in first if first[name] == shared[name]} == before
    assert {name for name in first if first[name] == own[name]} == {"text"}


def test_keys_follow_what_a_stage_depends_on_and_nothing_else(case: Case):
    plain = case.plan().keys

    def changed(*overrides: str) -> set[str]:
        other = case.plan(*overrides).keys
        return {name for name in plain if plain[name] != other[name]}

    last = {"prediction", "student-fp32", "student-int8"}
    assert changed("prediction.epochs=1") == last
    assert changed("intermediate.layer_map=top") == {"intermediate", *last}
    assert changed("augment.copies=2") == {"augmented", "intermediate", *last}
    assert changed("general.layer_map=top") == {"encoder", "intermediate", *last}
    assert changed("quantize.per_channel=false") == {"student-int8"}
    (case.folder / "text.txt").write_text("the film is bad .\n" * 50)
    assert changed() == {"text", "masked-lm", "encoder", "augmented", "intermediate", *last}


def test_a_layer_map_that_no_loss_reads_is_named(case: Case):
    (note,) = (note for note in case.plan("prediction.layer_map=top").notes if "layer_map" in note)
    assert (
        note == "prediction.layer_map has no effect: no loss of the stage matches layers; hidden_mse, attention_mse do"
    )
    for read in ("intermediate.layer_map=top", "prediction.layer_map=uniform"):
        assert not [note for note in case.plan(read).notes if "layer_map" in note]


def test_fields_on_scores_are_named_where_nothing_is_scored(case: Case):
    unscored = [f"{stage}.{field}" for stage in ("general", "masked_lm", "intermediate") for field in FIELDS]
    for setting in unscored:
        (note,) = case.plan(setting).notes
        assert note.startswith(
            f"{setting.partition('=')[0]} has no effect: no loss of the stage is on the task's answers"
        )
    per_task = "intermediate.per_task={toy: {evaluate_every: 0.5}}"
    assert "intermediate.evaluate_every has no effect" in case.plan(per_task).notes[0]
    read = [f"prediction.{field}" for field in FIELDS] + ["general.keep=last"]
    losses = "intermediate.losses=[{name: hidden_mse}, {name: hard_label}]"
    assert case.plan(*read).notes == case.plan(losses, "intermediate.keep=best").notes == ()


def test_the_resolved_recipe_can_be_read_again(case: Case):
    document = resolved_recipe(case.plan("augment.enabled=false"))
    again = Recipe.model_validate_json(json.dumps(document))
    kept = ["finetune", "general", "intermediate", "prediction", "export", "quantize"]
    assert [stage.id for stage in again.stages] == kept  # no masked_lm either, as it serves the augmentation
