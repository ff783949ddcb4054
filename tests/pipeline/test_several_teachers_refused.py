"""Several teachers: which count as different, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pretrained_toys import encoder_folder
from recipe_runs import TASK, TEACHER
from teacher_pairs import make_world, plan

from compress.cli.plans import plan_document
from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier
from compress.pipeline.plan.teachers import names_of
from compress.pipeline.preflight import preflight
from compress.tasks import TASK_KINDS


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_world(tmp_path)
    return tmp_path


def refused(*teachers: str, **fields: Any) -> str:
    with pytest.raises(CompressError) as caught:
        plan(*teachers, **fields)
    return str(caught.value)


def test_the_same_teacher_twice(world: Path):
    shutil.copytree("bytes", "copy")
    for twice in (("tiny.yaml", "tiny.yaml"), ("./bytes", "./copy"), ("tiny.yaml", "./bytes", "./bytes")):
        message = refused(*twice)
        assert "is given twice: an earlier teacher has the same weights and settings" in message
        assert "`compress checkpoint RUN --stage teacher -o DIR`" in message


def test_folders_of_one_name_are_told_apart(world: Path):
    shutil.copytree("words", "elsewhere/bytes")
    trio = plan("./bytes", "./elsewhere/bytes", "tiny.yaml")
    assert names_of(trio.teachers) == {"teacher": "bytes", "teacher-2": "bytes (teacher-2)", "teacher-3": "tiny"}
    assert plan_document(trio, Path("runs"))["teachers"] == ["bytes", "bytes (teacher-2)", "tiny"]


def test_one_card_with_other_settings_is_another_teacher(world: Path):
    """Cards with random weights, which start the same and are trained differently."""
    other = TEACHER.replace("name: tiny", "name: other").replace("max_steps: 3", "max_steps: 2")
    Path("other.yaml").write_text(other)
    assert "teacher-2" in plan("tiny.yaml", "other.yaml", overrides=()).keys


def test_a_recipe_without_a_student(world: Path):
    message = refused("tiny.yaml", "./bytes", recipe="int8", student=None, overrides=())
    assert message == (
        "recipe int8 makes no student from a card, which several teachers (tiny, bytes) are for: give one --teacher, or choose a recipe "
        "with a student, such as logits"
    )


@pytest.mark.parametrize(
    ("recipe", "stage", "loss"),
    [
        ("distilbert", "distill", "hidden_cosine"),
        ("minilm", "intermediate", "relation_kl"),
        ("tinybert", "intermediate", "embedding_mse"),
    ],
)
def test_losses_that_look_inside_a_teacher(world: Path, recipe: str, stage: str, loss: str):
    message = refused("tiny.yaml", "./words", recipe=recipe, overrides=())
    assert message.startswith(
        f"recipe {recipe}, stage {stage}: {loss} compares states inside one teacher, and there are 2; "
    )
    answers, _, advice = message.rpartition("): ")
    assert {"soft_target", "hard_label", "soft_cross_entropy"} <= set(answers.rpartition("(")[2].split(", "))
    assert advice == "choose recipe logits, or give one --teacher"


def test_without_those_losses_the_same_recipe_works(world: Path):
    losses = "distill.losses=[{name: soft_target, weight: 5.0}, {name: hidden_cosine, weight: 0.0}]"
    pair = plan("tiny.yaml", "./words", recipe="distilbert", overrides=(losses,))
    assert "ensemble" in next(node for node in pair.nodes if node.id == "student").inputs


def test_a_student_that_learns_from_labels_alone_reads_no_table(world: Path):
    """As in a row of an ablation; the ensemble's scores are still reported."""
    pair = plan("tiny.yaml", "./bytes", overrides=("distill.losses=[{name: hard_label}]",))
    assert next(node for node in pair.nodes if node.id == "student").inputs == {"teacher": "teacher"}
    assert "ensemble" in pair.keys


def test_a_kind_of_task_whose_answers_have_no_mean(world: Path, monkeypatch: pytest.MonkeyPatch):
    kinds = {name: replace(kind, ensemble=None) for name, kind in TASK_KINDS.items()}
    monkeypatch.setattr("compress.pipeline.stages.ensemble.TASK_KINDS", kinds)
    message = refused("tiny.yaml", "./bytes")
    assert message == (
        "task tiny-task: answers of several teachers (tiny, bytes) to a classification task cannot be averaged; give one --teacher"
    )
    assert plan("tiny.yaml").keys


def test_a_teacher_with_too_few_positions(world: Path):
    encoder_folder(Path("short"), positions=20)
    message = refused("tiny.yaml", "./short")
    assert (
        message == "task tiny-task: max_length is 24 tokens and teacher-2 short has 20 positions; "
        "set max_length to at most 20, for files of your own --max-length 20"
    )
    cut = Path("cut.yaml")
    cut.write_text(TASK.replace("max_length: 24", "max_length: 16"))
    message = refused("tiny.yaml", "./short", task="cut.yaml", overrides=("distill.max_length=24",))
    assert message.startswith("recipe logits, distill: max_length is 24 tokens and teacher-2 short has 20 positions")


def test_of_several_with_too_few_positions_the_shortest_is_named(world: Path):
    """The others allow what the shortest allows, so one error is enough."""
    encoder_folder(Path("less"), positions=22)
    encoder_folder(Path("least"), positions=20)
    message = refused("./less", "./least")
    assert "teacher-2 least has 20 positions" in message and "--max-length 20" in message


def test_a_fine_tuned_teacher_of_other_labels(world: Path):
    model: Any = load_classifier(Path("bytes"), kind="classification", labels=("good", "bad"), trained=False)
    shutil.copytree("bytes", "tuned")
    model.config.id2label, model.config.label2id = {0: "good", 1: "bad"}, {"good": 0, "bad": 1}
    model.save_pretrained("tuned")
    pair = plan("tiny.yaml", "./tuned")
    assert "adopt teacher-2" in [node.label for node in pair.nodes]
    notes = [note for note in pair.notes if "seen the tuning split" in note]
    assert [note.partition(",")[0] for note in notes] == ["teacher tuned is fine-tuned already", "of several teachers"]
    assert plan("./tuned", "tiny.yaml").notes[:2] == tuple(notes)
    with pytest.raises(CompressError, match=r"tuned: the checkpoint's labels \['good', 'bad'\] are not the task's"):
        preflight([pair], Path("runs"))
    refit = plan("tiny.yaml", "./tuned", refit=True)
    assert "finetune teacher-2" in [node.label for node in refit.nodes]


def test_a_teacher_whose_tokenizer_is_another_checkpoints(world: Path):
    config = json.loads(Path("bytes/config.json").read_text())
    Path("bytes/config.json").write_text(json.dumps(config | {"vocab_size": 40}))
    with pytest.raises(CompressError, match="bytes: the tokenizer knows 400 tokens and the embedding table"):
        preflight([plan("tiny.yaml", "./bytes")], Path("runs"))
