"""Several teachers: plans, what keys depend on, and estimates."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_runs import TEACHER
from teacher_pairs import PAIR, STEPS, make_world, plan, request

import compress
from compress.pipeline import Plan, plan_all
from compress.pipeline.estimate import Work, estimate
from compress.pipeline.lengths import mean_length
from compress.pipeline.memory import stage_memory
from compress.pipeline.plan import Context, Listener
from compress.pipeline.request import command_line
from compress.pipeline.results.assemble import result_key
from compress.pipeline.results.resolved import resolved_recipe
from compress.pipeline.stages.adopt import constant_score
from compress.pipeline.stages.learning_check import recorded_guess, warn_if_nothing_learnt
from compress.spec.recipe import Recipe


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_world(tmp_path)
    return tmp_path


def test_each_teacher_has_its_stages_and_the_first_is_the_teacher(world: Path):
    trio = plan("tiny.yaml", "./bytes", "./words")
    assert [node.label for node in trio.nodes] == [
        "finetune teacher",
        "export teacher-fp32",
        "finetune teacher-2",
        "finetune teacher-3",
        "teacher_logits teacher-logits",
        "teacher_logits teacher-2-logits",
        "teacher_logits teacher-3-logits",
        "ensemble",
        "distill student",
        "export student-fp32",
        "quantize student-int8",
    ]
    assert trio.name.startswith("logits-tiny+2-tiny-task-seed0-")
    by_id = {node.id: node for node in trio.nodes}
    assert by_id["student"].inputs == {"teacher": "teacher", "ensemble": "ensemble"}
    assert sorted(by_id["ensemble"].inputs.values()) == ["teacher-2-logits", "teacher-3-logits", "teacher-logits"]
    assert trio.checkpoint("teacher") == "teacher"
    assert trio.models == ("teacher-fp32", "student-fp32", "student-int8")
    assert str(trio.sizes["teacher-2"].architecture) == "roberta"
    assert trio.sizes_of(by_id["teacher-2"]) == trio.sizes["teacher-2"]
    assert trio.source_of(by_id["teacher-3"]).card.name == "words"


def test_a_table_of_another_length_is_called_once(world: Path):
    labels = [node.label for node in plan("tiny.yaml", "./bytes", overrides=(*STEPS, "distill.max_length=16")).nodes]
    assert "ensemble-16" in labels and "teacher_logits teacher-logits-16" in labels


def test_a_teacher_is_fine_tuned_as_it_is_alone(world: Path):
    """Runs with one teacher and with several then share it."""
    both, first, second = plan("tiny.yaml", "./bytes").keys, plan("tiny.yaml").keys, plan("./bytes").keys
    assert both["teacher"] == first["teacher"]
    assert both["teacher-fp32"] == first["teacher-fp32"]
    assert both["teacher-2"] == second["teacher"]
    assert both["student"] != first["student"]
    assert not {"ensemble", "teacher-logits"} & first.keys()


def test_the_ensemble_depends_on_every_teacher_and_not_on_their_order(world: Path):
    one, turned, other = plan("tiny.yaml", "./bytes").keys, plan("./bytes", "tiny.yaml").keys, {}
    assert one["ensemble"] == turned["ensemble"]
    assert one["student"] != turned["student"]  # its weights start from the first teacher
    three = plan("tiny.yaml", "./bytes", "./words").keys
    other = plan("tiny.yaml", "./words").keys
    assert len({plan_keys["ensemble"] for plan_keys in (one, three, other)}) == 3
    assert three["teacher-2-logits"] == one["teacher-2-logits"]  # made once for both
    changed = plan("tiny.yaml", "./bytes", overrides=("finetune.max_steps=3", "distill.max_steps=3")).keys
    assert changed["ensemble"] != one["ensemble"]


def test_seeds_have_teachers_of_their_own_unless_there_is_a_base_seed(world: Path):
    own = [each.keys for each in plan_all(request("tiny.yaml", "./bytes", seeds=(0, 1)))]
    shared = [each.keys for each in plan_all(request("tiny.yaml", "./bytes", seeds=(0, 1), base_seed=0))]
    assert own[0]["teacher-2"] != own[1]["teacher-2"]
    assert own[0]["ensemble"] != own[1]["ensemble"]
    assert shared[0]["ensemble"] == shared[1]["ensemble"] == own[0]["ensemble"]
    assert shared[0]["student"] != shared[1]["student"]


def test_a_recipe_may_name_several_and_a_command_overrides_them(world: Path):
    recipe = compress.plan("logits", tasks="task.yaml", teacher="tiny.yaml")[0].recipe
    listed = recipe.model_copy(update={"teacher": ("tiny.yaml", "./bytes")})
    assert plan(recipe=listed, overrides=()).keys == plan("tiny.yaml", "./bytes", overrides=()).keys
    assert plan("./words", recipe=listed).keys == plan("./words", recipe=recipe).keys
    assert type(recipe).model_validate({**recipe.model_dump(mode="json"), "teacher": ["a"]}).teacher == ("a",)
    with pytest.raises(ValueError, match="at least 1 item"):
        type(recipe).model_validate({**recipe.model_dump(mode="json"), "teacher": []})


def test_what_results_and_commands_name(world: Path):
    pair, alone = plan("tiny.yaml", "./bytes"), plan("tiny.yaml")
    assert resolved_recipe(pair)["teacher"] == ["tiny", "bytes"]
    assert resolved_recipe(alone)["teacher"] == "tiny"
    assert "--teacher tiny.yaml --teacher ./bytes --" in command_line(request("tiny.yaml", "./bytes"), pair)
    assert result_key(pair) != result_key(alone)
    options: Any = {"student": "narrow.yaml", "overrides": list(STEPS), "precision": "fp32"}
    (python,) = compress.plan("logits", tasks="task.yaml", teacher=["tiny.yaml", "./bytes"], **options)
    assert python.keys == pair.keys


def test_the_resolved_recipe_leaves_to_cards_what_teachers_do_not_share(world: Path):
    """Read again, it makes the same run: the batch size of one teacher's card does not apply to the other."""
    Path("other.yaml").write_text(
        TEACHER.replace("name: tiny", "name: other").replace("batch_size: 8", "batch_size: 4")
    )
    pair = plan("tiny.yaml", "other.yaml", overrides=())
    document = resolved_recipe(pair)
    settings = document["stages"][0]["finetune"]
    assert "batch_size" not in settings
    assert settings["learning_rate"] == 1e-3
    again = Recipe.model_validate_json(json.dumps(document))
    assert plan("tiny.yaml", "other.yaml", recipe=again, overrides=()).keys == pair.keys
    assert resolved_recipe(plan("tiny.yaml", recipe=again, overrides=()))["stages"][0]["finetune"]["batch_size"] == 8


RATES = "finetune.learning_rate=[1e-3, 2e-3]"


def test_each_teacher_chooses_its_own_rate_and_shares_the_choice_with_runs_of_it_alone(world: Path):
    pair, turned = (plan(*names, overrides=(RATES, *STEPS)) for names in (PAIR, PAIR[::-1]))
    alone = plan("./bytes", overrides=(RATES, *STEPS)).keys
    assert pair.candidates == {f"{name}-lr{rate}" for name in ("teacher", "teacher-2") for rate in ("0.001", "0.002")}
    assert pair.keys["teacher-2"] == alone["teacher"]
    assert pair.keys["ensemble"] == turned.keys["ensemble"]
    starts = [note.partition(",")[0] for note in pair.notes if "candidates" in note]
    assert starts == ["finetune of tiny: 2 candidates", "finetune of bytes: 2 candidates"]


def test_a_training_may_be_a_candidate_of_two_teachers(world: Path):
    """It is planned and trained once, under its first name."""

    def card(name: str, rates: str) -> str:
        text = TEACHER.replace("name: tiny", f"name: {name}").replace("1.0e-3", rates)
        Path(f"{name}.yaml").write_text(text)
        return f"{name}.yaml"

    low, high = card("low", "[1.0e-3, 2.0e-3]"), card("high", "[2.0e-3, 3.0e-3]")
    options: Any = {"overrides": ("distill.learning_rate=1e-3",)}
    by_id = {node.id: node for node in plan(low, high, **options).nodes}
    assert [*by_id["teacher-2"].inputs.values()] == ["teacher-lr0.002", "teacher-2-lr0.003"]
    pair = plan("tiny.yaml", low, **options)
    assert pair.candidates == {"teacher-2-lr0.002"}  # not the first teacher, which is a candidate too


def test_texts_of_another_length_have_a_table_of_their_own(world: Path):
    cut = ("prediction.max_length=16", "intermediate.enabled=false", "general.enabled=false", "augment.copies=1")
    pair = plan("tiny.yaml", "./bytes", recipe="tinybert", overrides=cut)
    assert "ensemble-16" in pair.keys
    node = next(node for node in pair.nodes if node.id == "prediction")
    assert node.inputs["ensemble"] == "ensemble-16"
    logits = next(node for node in pair.nodes if node.id == "teacher-2-logits-16")
    assert logits.inputs == {"teacher": "teacher-2", "augmented": "augmented"}


def test_the_estimate_counts_what_each_teacher_says_once(world: Path):
    def work(*teachers: str) -> dict[str, float]:
        return {each.label: each.flops for each in estimate([plan(*teachers)], Path("runs")).work}

    two, three = work("tiny.yaml", "./bytes"), work("tiny.yaml", "./bytes", "./words")
    assert two.keys() == {"finetune teacher", "finetune teacher-2", "distill student"}
    trio = plan("tiny.yaml", "./bytes", "./words")
    length = mean_length(trio, 24, trio.teachers["teacher-3"])
    added = three["distill student"] - two["distill student"]
    assert added == pytest.approx(108 * trio.sizes["teacher-3"].flops_per_example(length))


def test_on_a_gpu_no_teacher_is_beside_a_student_that_reads_a_table(world: Path):
    """They have predicted and were removed; on a CPU, the first one is still in memory."""
    pair = plan("tiny.yaml", "./bytes")
    student = next(node for node in pair.nodes if node.id == "student")
    on_cpu, on_gpu = (stage_memory(pair, student, gpu=gpu).teacher for gpu in (False, True))
    assert (on_cpu, on_gpu) == (4 * pair.sizes["teacher"].parameters, 0)
    alone = plan("tiny.yaml")
    student = next(node for node in alone.nodes if node.id == "student")
    assert stage_memory(alone, student, gpu=True).teacher == on_cpu


def test_a_stage_that_reads_no_table_is_estimated_as_with_one_teacher(world: Path):
    """Quantization-aware training is taught by its own model, whatever its teacher was before."""
    losses = "distill.losses=[{name: soft_target}]"
    several, alone = (
        plan(*names, recipe="distilbert-int8-qat", overrides=(*STEPS, losses))
        for names in (("tiny.yaml", "./words"), ("tiny.yaml",))
    )

    def work(run_plan: Plan) -> Work:
        return next(each for each in estimate([run_plan], Path("runs")).work if "qat" in each.label)

    assert work(several).flops == work(alone).flops
    memories = [stage_memory(run_plan, run_plan.nodes[-3], gpu=True) for run_plan in (several, alone)]
    assert several.nodes[-3].kind.name == "quantize_aware"
    assert memories[0] == memories[1] and memories[0].teacher > 0


def test_a_teacher_that_guesses_is_named_and_one_that_is_better_is_not(world: Path):
    pair = plan("tiny.yaml", "./bytes")
    context = Context(pair.task, "fp32", 1, Listener())
    guess = constant_score(pair.task.data)
    for name, points in (("teacher", guess + 0.1), ("teacher-2", guess), ("student", guess)):
        node = next(node for node in pair.nodes if node.id == name)
        artifact: Any = SimpleNamespace(info={"tuning_score": points}, describe={})
        warn_if_nothing_learnt(pair, node, artifact, context)
    teacher, student = context.notices
    assert teacher.startswith(f"teacher bytes scores {guess:.1f} on the tuning split")
    assert (
        "weighs as much in the teachers' mean as any other; leave it out, or train longer (--set finetune.epochs=N)"
        in teacher
    )
    assert student.startswith("student scores ") and "leave it out" not in student


def test_where_a_teacher_of_random_weights_guesses_a_trained_one_is_advised(world: Path):
    pair = plan("tiny.yaml", "./bytes")
    context = Context(pair.task, "fp32", 1, Listener())
    artifact: Any = SimpleNamespace(info={"tuning_score": 50.0}, describe={"constant_score": 50.0})
    for node in (node for node in pair.nodes if node.id in ("teacher", "teacher-2", "student")):
        warn_if_nothing_learnt(pair, node, artifact, context)
    assert ["give a pre-trained teacher (--teacher)" in line for line in context.notices] == [True, False, False]


def test_a_score_that_cannot_tell_models_apart_says_nothing(world: Path, monkeypatch: pytest.MonkeyPatch):
    pair = plan("tiny.yaml", "./bytes")
    context = Context(pair.task, "fp32", 1, Listener())
    node = next(node for node in pair.nodes if node.id == "student")
    artifact: Any = SimpleNamespace(info={"tuning_score": 0.0}, describe={})
    monkeypatch.setattr("compress.pipeline.stages.learning_check.can_judge", lambda data: False)
    warn_if_nothing_learnt(pair, node, artifact, context)
    assert not context.notices and recorded_guess(node, artifact.info, context) == {}


def test_that_a_model_has_learnt_is_not_shown_where_one_answer_is_always_right(world: Path):
    pair = plan("tiny.yaml", "./bytes")
    context = Context(pair.task, "fp32", 1, Listener())
    for points in (100.0, 99.0):
        artifact: Any = SimpleNamespace(info={"tuning_score": points}, describe={"constant_score": 100.0})
        warn_if_nothing_learnt(pair, next(node for node in pair.nodes if node.id == "student"), artifact, context)
    right, wrong = context.notices
    assert right == (
        "student: it scores 100.0 on the tuning split, as does a constant answer, so nothing shows that it has learnt anything; give a "
        "split with other answers, too, with --tuning FILE"
    )
    assert wrong.startswith("student scores 99.0 ")


def test_whether_it_learnt_is_said_from_the_manifest_without_reading_data(world: Path):
    pair = plan("tiny.yaml", "./bytes")
    context = Context(pair.task, "fp32", 1, Listener())
    node = next(node for node in pair.nodes if node.id == "teacher")
    described = recorded_guess(node, {"tuning_score": 70.0}, context)
    assert described == {"constant_score": constant_score(pair.task.data)}
    unread = Context(plan("tiny.yaml", "./bytes").task, "fp32", 1, Listener())
    for points in (-1.0, 101.0):
        artifact: Any = SimpleNamespace(info={"tuning_score": points}, describe=described)
        warn_if_nothing_learnt(pair, node, artifact, unread)
    assert len(unread.notices) == 1 and "data" not in vars(unread.task)
