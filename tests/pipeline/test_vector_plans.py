"""Plans and runs of sentence encoders: what is refused, which losses apply, and a student with another tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretrained_toys import ALIKE, encoder_folder
from recipe_runs import TEACHER

from compress.errors import CheckFailed, CompressError
from compress.models.dimensions import read_config
from compress.pipeline import Plan, Request, build_stage, plan_all, run_all
from compress.pipeline.preflight import preflight
from compress.pipeline.stages.registry import kind_of
from compress.spec.stages import Distill
from compress.tasks import load_reported

RECIPE = """
name: brief
title: Brief
student: {student}
stages:
  - finetune:
  - distill: {{losses: {losses}, epochs: 2, batch_size: 16, learning_rate: 3.0e-3, keep: last}}
  - export:
  - quantize:
"""
NARROW = "name: narrow\ntitle: Narrow\nlayers: 2\nhidden: 16\nintermediate: 24\ninit: project\n"
BOTH = "[{name: soft_target, weight: 3.0}, {name: hard_label}]"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    for kind in ("embedding", "regression"):
        (tmp_path / f"{kind}.yaml").write_text(ALIKE.format(kind=kind))
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    (tmp_path / "narrow.yaml").write_text(NARROW)
    return tmp_path


def request(world: Path, losses: str, *overrides: str, student: str = "distil-1l", **more: Any) -> Request:
    (world / "brief.yaml").write_text(RECIPE.format(student=student, losses=losses))
    task = (str(world / f"{more.pop('kind', 'embedding')}.yaml"),)
    options: dict[str, Any] = {"teacher": str(world / "tiny.yaml"), "precision": "fp32", "threads": 1, "bench": None}
    options |= {"root": world / "runs", "overrides": overrides, **more}
    return Request((str(world / "brief.yaml"),), task, **options)


def planned(world: Path, losses: str, *overrides: str, **more: Any) -> Plan:
    (plan,) = plan_all(request(world, losses, *overrides, **more))
    return plan


def losses_of(plan: Plan) -> list[tuple[str, float]]:
    (spec,) = [node.spec for node in plan.nodes if isinstance(node.spec, Distill)]
    return [(loss.name, loss.weight) for loss in spec.losses]


def noted(plan: Plan, words: str) -> bool:
    return any(words in note for note in plan.notes)


def test_the_teacher_is_taken_as_it_is_and_labels_teach_nothing(world: Path) -> None:
    plan = planned(world, BOTH)
    assert [node.kind.name for node in plan.nodes if node.id == "teacher"] == ["adopt"]
    assert not any(node.kind.name == "finetune" for node in plan.nodes)
    assert losses_of(plan) == [("soft_target", 3.0)]
    assert noted(plan, "distill: hard_label is left out: no label says which vector is right")
    assert plan.sizes["student"].classes == 0
    other = planned(world, BOTH, kind="regression")
    assert losses_of(other) == [("soft_target", 3.0), ("hard_label", 1.0)]
    assert any(node.kind.name == "finetune" for node in other.nodes)


def test_a_loss_on_labels_alone_gives_its_place_to_the_teacher_s_vectors(world: Path) -> None:
    plan = planned(world, "[{name: hard_label}]")
    assert losses_of(plan) == [("soft_target", 1.0)]
    assert noted(plan, "the student learns the teacher's vectors instead (soft_target)")
    beside = planned(world, "[{name: hard_label}, {name: hidden_cosine}]")
    assert losses_of(beside) == [("hidden_cosine", 1.0)]


def test_vectors_of_two_widths_are_compared_by_their_similarities(world: Path) -> None:
    card = str(world / "narrow.yaml")
    plan = planned(world, "[{name: soft_target, weight: 3.0}, {name: hidden_mse}]", student=card)
    assert losses_of(plan) == [("hidden_mse", 1.0), ("similarity_mse", 3.0)]
    assert noted(plan, "similarity_mse instead of soft_target: vectors of 16 and of 32 numbers have no cosine")
    assert losses_of(planned(world, "[{name: hard_label}]", student=card)) == [("similarity_mse", 1.0)]
    own = planned(world, "[{name: similarity_mse, weight: 2.0}]", student=card)
    assert losses_of(own) == [("similarity_mse", 2.0)] and not noted(own, "instead of")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"refit": True}, "--refit: no teacher is trained on the labels of embedding tasks, so it is used as it is"),
        (
            {"teacher": ["tiny", "tiny"]},
            r"answers of several teachers \(tiny, tiny\) to an embedding task cannot be averaged",
        ),
        ({"overrides": ("finetune.learning_rate=[1.0e-4, 2.0e-4]",)}, "learning_rate: found a list to choose from"),
    ],
)
def test_what_only_training_or_a_mean_could_do_is_refused(world: Path, more: dict[str, Any], message: str) -> None:
    if "teacher" in more:
        more = {"teacher": (str(world / "tiny.yaml"), str(world / "tiny.yaml"))}
    overrides = more.pop("overrides", ())
    with pytest.raises(CompressError, match=message):
        planned(world, BOTH, *overrides, **more)


def test_similarities_are_for_vectors_alone(world: Path) -> None:
    with pytest.raises(CompressError, match="similarity_mse is for embedding tasks, and alike is a regression task"):
        planned(world, "[{name: similarity_mse}]", kind="regression")


def distilled_by(plan: Plan) -> list[str]:
    specs = [node.spec for node in plan.nodes if node.kind.name == "distill"]
    return [loss.name for spec in specs if isinstance(spec, Distill) for loss in spec.losses]


@pytest.mark.parametrize("name", ["batch_size", "micro_batch_size"])
def test_similarities_are_not_learnt_from_one_text_at_a_time(world: Path, name: str) -> None:
    alone = request(world, "[{name: similarity_mse}]", f"distill.{name}=1")
    with pytest.raises(
        CompressError, match=f"stage distill: {name} is 1; similarity_mse compares the texts of a forward"
    ):
        preflight(plan_all(alone), world / "runs")
    preflight(plan_all(request(world, "[{name: soft_target}]", f"distill.{name}=1")), world / "runs")


def test_a_static_student_as_wide_as_its_teacher_learns_its_vectors(world: Path) -> None:
    plan = planned(world, "[{name: soft_target}]", student="static-256")
    assert distilled_by(plan) == ["soft_target"]
    assert str(plan.sizes["student"]) == f"table {plan.sizes['teacher'].vocabulary} x {plan.sizes['teacher'].hidden}"


def test_a_narrower_one_learns_their_cosines(world: Path) -> None:
    (world / "narrow.yaml").write_text("name: narrow\ntitle: N\narchitecture: static\nhidden: 8\ninit: static\n")
    plan = planned(world, "[{name: soft_target}]", student=str(world / "narrow.yaml"))
    assert distilled_by(plan) == ["similarity_mse"]


def test_settings_of_a_training_that_does_not_take_place_are_said_to_have_no_effect(world: Path) -> None:
    plan = planned(world, BOTH, "finetune.epochs=2")
    assert noted(plan, "--set finetune.epochs=2 has no effect: teacher tiny is used as it is")


def test_pooling_is_of_the_key_and_said_where_no_file_says_it(world: Path) -> None:
    folder = encoder_folder(world / "teacher", "bert")
    plan = planned(world, BOTH, teacher=str(folder))
    assert noted(plan, "teacher teacher: its folder does not specify the pooling")
    (folder / "1_Pooling").mkdir()
    path = folder / "1_Pooling" / "config.json"
    keys = {"unsaid": plan.nodes[0].key}
    for mode in ("mean", "cls"):
        path.write_text(json.dumps({f"pooling_mode_{'cls_token' if mode == 'cls' else 'mean_tokens'}": True}))
        again = planned(world, BOTH, teacher=str(folder))
        assert not noted(again, "pooling")
        keys[mode] = again.nodes[0].key
    assert keys["unsaid"] == keys["mean"] != keys["cls"]
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))
    plan = planned(world, BOTH, teacher=str(folder))
    assert noted(plan, "teacher teacher: it cuts texts to 16 tokens") and plan.nodes[0].key == keys["cls"]
    path.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(CompressError, match="expected either mean or cls; found max_tokens"):
        planned(world, BOTH, teacher=str(folder))
    planned(world, BOTH, teacher=str(folder), kind="regression")  # regression needs no pooling


def test_of_one_tuning_pair_no_checkpoint_is_chosen(world: Path) -> None:
    """It has no correlation, for vectors as for scores."""
    (world / "embedding.yaml").write_text(ALIKE.format(kind="embedding") + "tuning_examples: 1\n")
    settings = ("distill.keep=best", "distill.max_steps=3", "distill.evaluate_every=0.1")
    info = build_stage(request(world, BOTH, *settings), "student").info
    assert (info["steps"], info["best_step"], info["tuning_score"], info["tuning_history"]) == (3, None, None, [])


def test_an_encoder_that_orders_nothing_is_refused(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = encoder_folder(world / "teacher", "bert")
    monkeypatch.setattr("compress.pipeline.stages.adopt.constant_score", lambda data: 101.0)
    message = "scores .* where one vector for all texts scores 101.0: give a trained sentence encoder"
    with pytest.raises(CheckFailed, match=message):
        run_all(request(world, BOTH, teacher=str(folder)))


@pytest.mark.slow
def test_a_student_with_other_tokens_learns_the_vectors_of_each_text(world: Path) -> None:
    teacher, student = encoder_folder(world / "teacher", "bert", seed=8), encoder_folder(world / "bytes")
    (result,) = run_all(request(world, BOTH, teacher=str(teacher), student=str(student)))
    (folder,) = (world / "runs").glob("brief-*")
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    values = [line["losses"]["soft_target"] for line in log if "soft_target" in line.get("losses", {})]
    assert values[-1] < 0.5 * values[0], values
    with np.load(folder / "predictions.npz") as file:
        mine, theirs = file["student-fp32/dev"][:, 1:], file["teacher-fp32/dev"][:, 1:]
    cosines = (mine * theirs).reshape(-1, 32).sum(1)
    assert cosines.mean() > 0.5  # near 0 for a student that has learnt nothing
    assert read_config(_checkpoint(world, folder, "student"))["sentence_pooling"] == "mean"
    assert result.final.fidelity is not None and result.final.fidelity.mean_cosine is not None


def _checkpoint(world: Path, folder: Path, name: str) -> Path:
    return world / "runs" / ".store" / json.loads((folder / "checkpoints.json").read_text())[name]


def test_lines_to_calibrate_on_are_single_texts_and_none_of_a_reported_pair(world: Path) -> None:
    path = world / "lines.txt"
    path.write_text("\n".join(f"a line of text {number}" for number in range(40)))
    setting = f"quantize.calibration_text={path}"
    plan = planned(world, BOTH, setting, "quantize.method=static")
    for node in plan.nodes:
        if (check := kind_of(node).check) is not None:
            check(plan, node)
    reported = load_reported(plan.task.spec, plan.task.folder, None).splits["dev"].texts[1][3]
    path.write_text("\n".join([*(f"a line of text {number}" for number in range(40)), reported.upper()]))
    plan = planned(world, BOTH, setting, "quantize.method=static")
    (last,) = [node for node in plan.nodes if node.id == "student-int8"]
    check = kind_of(last).check
    assert check is not None
    with pytest.raises(CompressError, match="1 of 41 texts are in the split `dev`"):
        check(plan, last)
