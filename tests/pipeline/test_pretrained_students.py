"""A student that starts from its own checkpoint, with its own tokenizer, and learns from its teacher's logits."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from listeners import StopError, Stopping
from pretrained_toys import encoder_folder
from recipe_runs import TASK

from compress.augment import read_augmented
from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier, load_tokenizer
from compress.models.dimensions import read_config
from compress.pipeline import Listener, Plan, Request, build_stage, plan_all
from compress.pipeline.ablation.rows import chosen_rows
from compress.pipeline.building import build_nodes
from compress.pipeline.plan import Context
from compress.pipeline.training import teacher_targets
from compress.store import Artifact, Store

LABELS = ("negative", "positive")
BRIEF = "finetune.max_steps=3"
STEPS = 28  # of the student, in COPIES
COPIES = """
name: copies
title: Logits on copies
student: distil-1l
stages:
  - finetune:
  - augment: {source: embedding, copies: 1, replace_probability: 0.5}
  - distill: {losses: [{name: soft_target, temperature: 2.0}], epochs: 2, batch_size: 16, learning_rate: 1.0e-3, dropout: 0.1}
  - export:
  - quantize:
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "copies.yaml").write_text(COPIES)
    (tmp_path / "text.txt").write_text("the film is good .\n\nthe story is not bad .\n" * 100)
    encoder_folder(tmp_path / "teacher", "bert", seed=8)
    encoder_folder(tmp_path / "bytes")
    return tmp_path


def request_of(world: Path, recipe: str, student: str = "bytes", *overrides: str, **more: Any) -> Request:

    options: dict[str, Any] = {"precision": "fp32", "threads": 1, "bench": None, "root": world / "runs", **more}
    task = (str(world / "task.yaml"),)
    return Request(
        (recipe,),
        task,
        teacher=str(world / "teacher"),
        student=str(world / student),
        overrides=(BRIEF, *overrides),
        **options,
    )


def planned(world: Path, recipe: str, student: str = "bytes", *overrides: str, **more: Any) -> Plan:
    (plan,) = plan_all(request_of(world, recipe, student, *overrides, **more))
    return plan


def built(plan: Plan, root: Path, listener: Listener, until: str = "student") -> dict[str, Artifact]:
    context = Context(plan.task, "fp32", threads=1, listener=listener, checkpoint_seconds=-1)
    return build_nodes(plan, plan.needed_for(until), context, Store(root / ".store"))[0]


def alone(folder: Path, texts: list[str], length: int) -> np.ndarray:
    """Return the logits of a checkpoint, computed one text at a time with its own tokenizer."""
    model: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=True).eval()
    tokenizer = load_tokenizer(folder)
    tokenizer.enable_truncation(length)
    with torch.no_grad():
        return np.stack([model(torch.tensor([tokenizer.encode(text).ids])).logits[0].numpy() for text in texts])


@pytest.mark.slow
def test_the_table_has_the_teacher_s_own_logits_and_an_interruption_changes_nothing(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each example and copy, in order; the student keeps its own tokenizer and config."""
    tables: list[np.ndarray] = []
    table = teacher_targets._logits_table
    monkeypatch.setattr(teacher_targets, "_logits_table", lambda *args: tables.append(table(*args)) or tables[-1])
    plan = planned(world, str(world / "copies.yaml"))
    whole = built(plan, world / "whole", Listener())
    copies = read_augmented(whole["augmented"].path)
    texts = [*plan.task.data.train.texts[0], *copies.texts[0]]
    expected = alone(whole["teacher"].path, texts, plan.task.spec.max_length)
    np.testing.assert_allclose(tables[0], expected, atol=1e-5)  # fp32, padded only in the table
    assert expected.std(axis=0).min() > 0.005  # the texts' logits differ

    with pytest.raises(StopError):
        built(plan, world / "parts", Stopping(12, STEPS))
    again = Stopping(99, STEPS)
    parts = built(plan, world / "parts", again)
    assert again.seen[0] == 12 and again.seen[-1] == STEPS
    files = [
        {path.name: path.read_bytes() for path in artifacts["student"].path.iterdir() if path.suffix != ".jsonl"}
        for artifacts in (whole, parts)
    ]
    assert files[0].pop("manifest.json") and files[1].pop("manifest.json")
    assert files[0] == files[1]
    assert read_config(whole["student"].path)["model_type"] == "roberta"
    assert load_tokenizer(whole["student"].path).to_str() == load_tokenizer(world / "bytes").to_str()


@pytest.mark.parametrize("tokenizer", ["another", *slow("its teacher's")])
@pytest.mark.parametrize("brief", [False, True], ids=["table", "forward"])
def test_a_student_that_is_its_teacher_has_nothing_to_learn(world: Path, tokenizer: str, brief: bool) -> None:
    """With the same weights and tokens: from the table and by a forward pass per batch, with one tokenizer and two."""
    trained = build_stage(request_of(world, "logits"), "teacher")
    shutil.copytree(trained.path, world / "same")
    if tokenizer == "another":
        stored, config = (
            json.loads((world / "same" / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json")
        )
        strip = not stored["normalizer"]["strip_accents"]  # no text has accents
        (world / "same/tokenizer_config.json").write_text(json.dumps(config | {"strip_accents": strip}))
    steps = "distill.max_steps=2" if brief else "distill.epochs=1"
    losses = "distill.losses=[{name: soft_target, temperature: 2.0}]"
    request = request_of(world, "logits", "same", losses, "distill.dropout=0", steps)
    (plan,) = plan_all(request)
    assert plan.shares_tokenizer == (tokenizer == "its teacher's")
    student = build_stage(request, "student")
    assert (
        alone(trained.path, plan.task.data.train.texts[0][:20], 24).std(axis=0).min() > 0.005
    )  # the texts' logits differ
    first = json.loads((student.path / "log.jsonl").read_text().splitlines()[0])
    assert first["losses"]["soft_target"] == pytest.approx(0, abs=1e-9)


def test_the_plan_has_the_sizes_of_each_and_says_what_is_different(world: Path) -> None:
    plan = planned(world, "logits")
    assert (plan.sizes["teacher"].architecture, plan.sizes["student"].architecture) == ("bert", "roberta")
    assert (plan.sizes["teacher"].vocabulary, plan.sizes["student"].vocabulary) == (300, 400)
    assert sum("cut texts into different tokens" in note for note in plan.notes) == 1
    encoder_folder(world / "words", "bert")
    same = planned(world, "logits", "words")
    assert same.shares_tokenizer
    assert not any("different tokens" in note for note in same.notes)


def test_the_key_has_the_checkpoint_and_not_where_it_lies(world: Path) -> None:
    def key(student: str) -> str:
        return next(node.key for node in planned(world, "logits", student).nodes if node.id == "student")

    first = key("bytes")
    shutil.copytree(world / "bytes", world / "elsewhere")
    (world / "card.yaml").write_text("name: card\ntitle: T\ninit: pretrained\ncheckpoint: ./elsewhere\n")
    assert key("elsewhere") == key("card.yaml") == first
    encoder_folder(world / "elsewhere", seed=6)
    assert key("elsewhere") == key("card.yaml") != first


def test_with_one_tokenizer_layers_are_learnt_and_text_is_read(world: Path) -> None:
    """The stage on plain text starts from the pre-trained weights."""
    encoder_folder(world / "words", "bert")
    losses = "losses=[{name: hidden_mse}]"
    brief = (f"general.{losses}", f"intermediate.{losses}", "general.max_steps=1", "general.learning_rate=1e-12")
    request = request_of(
        world,
        "tinybert",
        "words",
        *brief,
        "general.dropout=0",
        "general.batch_size=8",
        corpus=(str(world / "text.txt"),),
    )
    (plan,) = plan_all(request)
    assert {"encoder", "intermediate", "prediction"} <= {node.id for node in plan.nodes}
    from compress.models.checkpoints.weights import load_weights

    before, after = load_weights(world / "words"), load_weights(build_stage(request, "encoder").path)
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=1e-9)  # the learning rate is close to 0


@pytest.mark.parametrize(
    ("recipe", "overrides", "message"),
    [
        ("distilbert", (), "stage distill: hidden_cosine compares states per token, and student bytes and teacher teacher cut"),
        ("minilm", (), "stage intermediate: relation_kl compares states per token"),
        ("logits", ("distill.max_length=31",), "recipe logits, distill: max_length is 31 tokens and student short has 30"),
    ],
)  # fmt: skip
def test_what_needs_the_same_tokens_is_refused_by_name(
    world: Path, recipe: str, overrides: tuple[str, ...], message: str
) -> None:
    encoder_folder(world / "short", positions=30)
    student = "short" if overrides else "bytes"
    with pytest.raises(CompressError, match=re.escape(message)):
        planned(world, recipe, student, *overrides)


def test_a_stage_on_plain_text_is_refused_by_name(world: Path) -> None:
    request = request_of(world, "tinybert", corpus=(str(world / "text.txt"),))
    message = "stage general: trains on plain text in the tokens of teacher teacher, and the student has other tokens"
    with pytest.raises(CompressError, match=re.escape(message)):
        plan_all(request)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("checkpoint: ./bytes", "`init: pretrained` and `checkpoint` belong together"),
        ("init: pretrained", "`init: pretrained` and `checkpoint` belong together"),
        ("init: pretrained\ncheckpoint: ./bytes\nlayers: 3", "layers: decided by the checkpoint of a pre-trained student; leave it out"),
        ("architecture: bert", "layers: expected a number of layers; only a student with"),
        ("init: pretrained\ncheckpoint: ./none", "student mine: checkpoint: teacher ./none: no such folder"),
        ("init: pretrained\ncheckpoint: bert-mini", "student mine: checkpoint: bert-mini has random weights; name a card"),
    ],
)  # fmt: skip
def test_cards_that_make_no_sense(world: Path, card: str, message: str) -> None:
    (world / "mine.yaml").write_text(f"name: mine\ntitle: M\n{card}\n")
    with pytest.raises(CompressError, match=re.escape(message)):
        planned(world, "logits", "mine.yaml")


def test_an_ablation_can_have_one_for_a_row(world: Path) -> None:
    rows = chosen_rows("logits", (), [f"student {world / 'bytes'}"], corpus=False)
    assert [row.student for row in rows] == [None, str(world / "bytes")]
    assert rows[1].recipe.name == "logits-student-bytes"


def test_a_folder_that_is_none_is_refused_as_a_student(world: Path) -> None:
    with pytest.raises(CompressError, match=r"student \S+none: no such folder; expected the folder of a transformers"):
        planned(world, "logits", "none")
    (world / "bytes/model.safetensors").unlink()
    with pytest.raises(CompressError, match="bytes"):
        planned(world, "logits")


def test_a_head_of_its_own_is_put_in_the_task_s_order(world: Path) -> None:
    from compress.pipeline.training.initial_student import _pretrained_classifier

    trained = build_stage(request_of(world, "logits"), "teacher")
    shutil.copytree(trained.path, world / "turned")
    path = world / "turned/config.json"
    config = json.loads(path.read_text())
    config["id2label"] = {"0": "positive", "1": "negative"}
    path.write_text(json.dumps(config | {"label2id": {"positive": 0, "negative": 1}}))
    plan = planned(world, "logits", "turned")
    assert plan.pretrained is not None
    model = _pretrained_classifier(plan.pretrained, Context(plan.task, "fp32", 1, Listener()))
    own = load_classifier(trained.path, kind="classification", labels=LABELS, trained=True)
    weights = (each.get_parameter("classifier.weight") for each in (model, own))
    turned, straight = weights
    assert torch.equal(turned, straight[[1, 0]])
