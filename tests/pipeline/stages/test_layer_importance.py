"""`init: prune`: students copied from the most important layers, from the plan to the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrained_toys import encoder_folder
from recipe_runs import TASK, TEACHER

from compress.cli.plans import plan_document
from compress.errors import CompressError
from compress.models.cards import StudentCard
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import Dimensions
from compress.models.pruned.shape import PrunedShape
from compress.models.students import build_student, student_dimensions
from compress.pipeline import Listener, Plan, Request, build_stage, plan_all, run_all
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.plan.students import CHOSEN_LAYERS, card_of
from compress.report.page import page_of, tasks_of
from compress.store import Artifact

CARD = "name: short\ntitle: Short\nlayers: {layers}\ninit: prune\nexamples: 24\n"
RECIPE = """
name: dropped
title: Layers left out
student: short.yaml
stages:
  - finetune: {max_steps: 4, batch_size: 8, learning_rate: 1.0e-3}
  - distill: {max_steps: 2, batch_size: 8, losses: [{name: soft_target}]}
  - export:
"""
TWICE = RECIPE.replace("name: dropped", "name: twice").replace(
    "  - distill", "  - general: {max_steps: 2, batch_size: 4, losses: [{name: hidden_mse}]}\n  - distill"
)
SIZES = Dimensions(
    architecture="bert", layers=4, hidden=32, heads=2, intermediate=64, vocabulary=300, positions=32, token_types=2,
    classes=2, embedding=32, blocks=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers")
    files = {"tiny": TEACHER, "tiny-task": TASK, "dropped": RECIPE, "short": CARD.format(layers=2)}
    files |= {"whole": CARD.format(layers=4).replace("short", "whole")}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def request(world: Path, *, student: str = "short", root: str = "runs", seeds: tuple[int, ...] = (0,)) -> Request:
    recipe, task = ((str(world / f"{name}.yaml"),) for name in ("dropped", "tiny-task"))
    options: dict[str, Any] = {"teacher": str(world / "tiny.yaml"), "student": str(world / f"{student}.yaml")}
    return Request(recipe, task, **options, root=world / root, seeds=seeds, threads=1, precision="fp32", bench=None)


class Counting(Listener):
    """Counts the judged models, and interrupts after `most` of them."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.judged, self.most = 0, most

    def progress(self, what: str, done: int, total: int | None) -> None:
        if what == "judging layers":
            assert total is not None and 1 <= done <= total
            self.judged += 1
            if self.judged == self.most:
                raise KeyboardInterrupt


def chosen(world: Path, listener: Listener | None = None, **options: Any) -> Artifact:
    return build_stage(request(world, **options), CHOSEN_LAYERS, listener or Listener())


def test_a_stopped_choice_goes_on_and_is_that_of_one_that_was_not(world: Path) -> None:
    whole = Counting()
    expected = chosen(world, whole).info
    assert whole.judged == 4 + 3 + 1  # two rounds, and the evenly spaced layers
    assert sorted([*expected["copied_layers"], *expected["dropped"]]) == [0, 1, 2, 3]
    assert len(expected["alone"]) == 4 and expected["examples"] == 24
    first, rest = Counting(most=6), Counting()
    with pytest.raises(KeyboardInterrupt):
        chosen(world, first, root="stopped")
    assert chosen(world, rest, root="stopped").info == expected
    assert rest.judged == 3 + 1  # the finished round was kept


def test_train_alone_is_read(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_stage(request(world, root="splits"), "teacher", Listener())
    splits, encoded = set[str](), TaskSource.encoded

    def noted(self: TaskSource, split: Any, *rest: Any) -> Any:
        splits.add(split)
        return encoded(self, split, *rest)

    monkeypatch.setattr(TaskSource, "encoded", noted)
    chosen(world, root="splits")
    assert splits == {"train"}


def test_the_student_is_of_these_layers_and_with_all_of_them_it_is_the_teacher(world: Path) -> None:
    for student, layers in (("short", 2), ("whole", 4)):
        artifact = chosen(world, student=student)
        (plan,) = plan_all(request(world, student=student))
        card = card_of(plan, {CHOSEN_LAYERS: artifact})
        assert (card.init, card.copy_layers) == ("copy", tuple(artifact.info["copied_layers"]))
        assert len(artifact.info["copied_layers"]) == layers
        folder = build_stage(request(world), "teacher", Listener()).path
        teacher: Any = load_classifier(folder, kind="classification", labels=plan.task.data.labels, trained=True)
        built: Any = build_student(card, teacher, plan.sizes["student"]).eval()
        for mine, theirs in enumerate(artifact.info["copied_layers"]):
            names = [f"bert.encoder.layer.{number}.output.dense.weight" for number in (mine, theirs)]
            assert torch.equal(built.get_parameter(names[0]), teacher.get_parameter(names[1]))
        ids = torch.arange(5, 17)[None]
        with torch.no_grad():
            assert torch.equal(built(input_ids=ids).logits, teacher.eval()(input_ids=ids).logits) == (layers == 4)
    assert (
        artifact.info["dropped"] == [] and artifact.info["copied_divergence"] == artifact.info["spaced_divergence"] == 0
    )


def test_plan_result_and_report_say_which_layers_they_are(world: Path) -> None:
    (plan,) = plan_all(request(world))
    before = plan_document(plan, world / "nothing")
    assert before["copied_layers"] is None
    assert before["start"] == "copying the 2 teacher layers that matter most, chosen by the run on 24 training examples"
    (result,) = run_all(request(world, root="said"))
    (record,) = [stage.info for stage in result.stages if stage.kind == CHOSEN_LAYERS]
    assert plan_document(plan, world / "said")["copied_layers"] == record["copied_layers"] != []
    line = " and ".join(map(str, record["copied_layers"]))
    for results, seed in (((result,), ""), ((result, result.model_copy(update={"seed": 1})), " (seed 0)")):
        findings = page_of(tasks_of(results)).tasks[0].findings
        assert any(
            f"starts from the teacher's layers {line}, counted from 0{seed}. On 24 training" in each
            for each in findings
        )


def test_other_seeds_and_examples_are_other_choices_and_other_training_is_not(world: Path) -> None:
    def key(plan: Plan) -> str:
        return next(node.key for node in plan.nodes if node.id == CHOSEN_LAYERS)

    plans = plan_all(request(world, seeds=(0, 1)))
    assert key(plans[0]) != key(plans[1])
    (world / "more.yaml").write_text(CARD.format(layers=2).replace("short", "more").replace("24", "32"))
    assert key(plan_all(request(world, student="more"))[0]) != key(plans[0])
    recipe = world / "dropped.yaml"
    try:
        recipe.write_text(RECIPE.replace("max_steps: 2", "max_steps: 3"))
        assert key(plan_all(request(world))[0]) == key(plans[0])
    finally:
        recipe.write_text(RECIPE)


def test_seeds_with_one_base_seed_share_the_choice_and_the_general_stage(world: Path) -> None:
    (world / "twice.yaml").write_text(TWICE)
    (world / "text.txt").write_text("the film is good .\n\n" * 60)
    checkpoint = world / "checkpoint"
    encoder_folder(checkpoint, "bert", layers=4)
    own = replace(
        request(world, seeds=(0, 1)),
        recipes=(str(world / "twice.yaml"),),
        teacher=str(checkpoint),
        corpus=(str(world / "text.txt"),),
    )

    def shared(own: Request) -> list[bool]:
        one, other = ({node.id: node for node in plan.nodes} for plan in plan_all(own))
        return [one[name].key == other[name].key for name in (CHOSEN_LAYERS, "encoder", "student")]

    assert shared(own) == [False, False, False]
    assert shared(replace(own, base_seed=7)) == [True, True, False]
    assert {
        node.seed for plan in plan_all(replace(own, base_seed=7)) for node in plan.nodes if node.id == CHOSEN_LAYERS
    } == {7}


@pytest.mark.slow
def test_a_general_stage_starts_the_encoder_from_the_same_layers(world: Path) -> None:
    (world / "twice.yaml").write_text(TWICE)
    (world / "text.txt").write_text("the film is good .\n\n" * 60)
    own = replace(
        request(world, root="general"), recipes=(str(world / "twice.yaml"),), corpus=(str(world / "text.txt"),)
    )
    checkpoint = build_stage(request(world, root="general"), "teacher", Listener()).path
    own = replace(own, teacher=str(checkpoint), refit=True)
    (plan,) = plan_all(own)
    assert [CHOSEN_LAYERS in node.inputs for node in plan.nodes if node.id in ("encoder", "student")] == [True, True]
    assert build_stage(own, "student", Listener()).path.is_dir()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"copy_layers": (0, 1)}, "copy_layers: with `init: prune` the run chooses the layers"),
        ({"architecture": "albert"}, "init: prune: layers of an ALBERT share weights"),
        ({"init": "copy", "examples": 8}, "examples: only with `init: prune`; found `copy`"),
    ],
)
def test_cards_that_cannot_be_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StudentCard(**{"name": "s", "title": "S", "layers": 2, "init": "prune", **fields})


@pytest.mark.parametrize(
    ("student", "teacher", "message"),
    [
        ({}, {"architecture": "albert", "blocks": 1}, "layers of an ALBERT share weights"),
        (
            {"architecture": "bert"},
            {"architecture": "albert", "blocks": 1},
            "the teacher is an ALBERT, whose layers share weights",
        ),
        ({"layers": 5}, {}, "student s has 5 layers and the teacher 4"),
        ({"hidden": 16}, {}, "hidden is 16 and the teacher's is 32"),
        ({}, {"pruned": PrunedShape(((0,),) * 4, (16,) * 4)}, "starts from the teacher's layers, which are pruned"),
    ],
)
def test_teachers_of_which_no_layer_can_be_left_out_are_refused(
    student: dict[str, Any], teacher: dict[str, Any], message: str
) -> None:
    card = StudentCard(**{"name": "s", "title": "S", "layers": 2, "init": "prune", **student})
    with pytest.raises(CompressError, match=message):
        student_dimensions(card, replace(SIZES, **teacher))
