"""A general stage on the labels of plain text: its plan, what is refused, and what it leaves for the next stage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModel
from worlds import encoder_world

from compress.errors import CompressError
from compress.losses import LOSSES
from compress.models.checkpoints.folders import load_classifier
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.plan import Context, Job, Listener
from compress.pipeline.stages.registry import kind_of
from compress.pipeline.training.initial_student import initial_student
from compress.store import Artifact

STUDENT = "name: small\ntitle: small\narchitecture: {0}\nlayers: 2\nhidden: 16\nheads: 2\ninit: random\n"
ALBERT = STUDENT.format("albert") + "albert: {embedding: 8}\n"
CHOICE = "general.losses=[{{name: {0}}}, {{name: {1}}}]"
BOTH = CHOICE.format("sentence_order", "masked_lm")


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    text = "the film is good . the film is not bad .\n\n" * 60
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    (tmp_path / "small.yaml").write_text(ALBERT)
    return tmp_path


def plan(world: Path, *overrides: str) -> Plan:
    request = Request(
        ("tinybert",),
        (str(world / "task.yaml"),),
        teacher=str(world / "teacher"),
        student=str(world / "small.yaml"),
        corpus=(str(world / "text.txt"),),
        overrides=("general.batch_size=8", "general.max_steps=3", "augment.enabled=false", *overrides),
    )
    return plan_all(request)[0]


def artifacts_of(world: Path, planned: Plan) -> dict[str, Artifact]:
    """Run a plan's stages `tokenize` and `general`, and return their artefacts."""
    artifacts: dict[str, Artifact] = {}
    context = Context(planned.task, "fp32", 1, Listener())
    for node in planned.nodes:
        if node.kind.name in ("tokenize", "general"):
            out, work = (world / f"{node.key}-{what}" for what in ("out", "work"))
            out.mkdir()
            work.mkdir()
            inputs = {"text": artifacts.get("text", Artifact(out, ""))}
            info = kind_of(node).run(Job(planned, node, inputs, context, out, work))
            artifacts[node.id] = Artifact(out, node.key, dict(info))
    return artifacts


def student_of(world: Path, planned: Plan, artifacts: dict[str, Artifact]) -> Any:
    node = next(node for node in planned.nodes if node.kind.name == "distill")
    teacher = load_classifier(world / "teacher", kind="classification", labels=("a", "b"), trained=False)
    torch.manual_seed(5)
    context = Context(planned.task, "fp32", 1, Listener())
    job = Job(planned, node, {"encoder": artifacts["encoder"]}, context, world, world)
    return initial_student(job, teacher, None)[0]


@pytest.mark.parametrize(
    "names", [("sentence_order", "masked_lm"), ("next_sentence", "masked_lm"), ("sentence_order",)]
)
def test_the_encoder_is_saved_without_heads_and_its_pooler_goes_on(world: Path, names: tuple[str, ...]):
    planned = plan(world, f"general.losses=[{', '.join('{name: ' + name + '}' for name in names)}]")
    artifacts = artifacts_of(world, planned)
    encoder = artifacts["encoder"]
    assert encoder.info["pooler_trained"]
    assert encoder.info["steps"] == 3
    log = [json.loads(line) for line in (encoder.path / "log.jsonl").read_text().splitlines()]
    assert set(log[0]["losses"]) == set(names)
    saved = load_file(encoder.path / "model.safetensors")
    fresh = AutoModel.from_config(AutoModel.from_pretrained(encoder.path).config)
    assert {name: tensor.shape for name, tensor in saved.items()} == {
        name: tensor.shape for name, tensor in fresh.state_dict().items()
    }
    state = student_of(world, planned, artifacts).base_model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in saved.items())


def test_a_pooler_that_nothing_trained_stays_behind(world: Path):
    planned = plan(world, "general.losses=[{name: hidden_mse}]", "intermediate.losses=[{name: hidden_mse}]")
    artifacts = artifacts_of(world, planned)
    assert "pooler_trained" not in artifacts["encoder"].info
    saved = load_file(artifacts["encoder"].path / "model.safetensors")
    state = student_of(world, planned, artifacts).base_model.state_dict()
    assert {name for name, tensor in saved.items() if not torch.equal(state[name], tensor)} == {"pooler.weight"}


def test_the_order_is_learnt_beside_distillation(world: Path):
    planned = plan(world, "general.losses=[{name: hidden_mse}, {name: sentence_order, weight: 0.5}]")
    log = (artifacts_of(world, planned)["encoder"].path / "log.jsonl").read_text().splitlines()
    assert set(json.loads(log[0])["losses"]) == {"hidden_mse", "sentence_order"}


def test_a_student_without_what_the_loss_needs_is_found_at_once(world: Path):
    (world / "small.yaml").write_text(STUDENT.format("distilbert"))
    with pytest.raises(
        CompressError, match="recipe tinybert, stage general, student small: sentence_order: a distilbert has no pooler"
    ):
        plan(world, "general.losses=[{name: sentence_order}]", "intermediate.losses=[{name: hidden_mse}]")


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.of_text])
def test_a_task_has_no_such_labels(world: Path, loss: str):
    with pytest.raises(CompressError, match=f"{loss} needs plain text, which no distill stage reads"):
        plan(world, f"intermediate.losses=[{{name: {loss}}}]")


def test_a_teacher_that_is_not_asked_is_not_said_to_be_learnt_from(world: Path):
    config = world / "teacher" / "config.json"
    names = {"id2label": {"0": "negative", "1": "positive"}, "label2id": {"negative": 0, "positive": 1}}
    changed = {**json.loads(config.read_text()), **names, "architectures": ["BertForSequenceClassification"]}
    config.write_text(json.dumps(changed))
    said = "general distillation learns from the fine-tuned teacher: no other was given"
    assert said in plan(world).notes
    assert said not in plan(world, BOTH).notes
