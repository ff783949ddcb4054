"""DistilBERT's pre-training on plain text: the source of the teacher's head, and the student's initial weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrain_toys import run_stages
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_encoder
from compress.pipeline import Plan, Request, plan_all

STUDENT = "name: half\ntitle: half\narchitecture: distilbert\nlayers: 1\n"
TRIPLE = "[{name: masked_soft_target, weight: 5}, {name: masked_lm, weight: 2}, {name: hidden_cosine}]"
BRIEF = ("masked_lm.max_steps=2", "masked_lm.batch_size=8", "general.batch_size=8", "general.max_steps=3")


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    text = "the film is good . the film is not bad .\n\n" * 60
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    (tmp_path / "half.yaml").write_text(STUDENT)
    return tmp_path


def plan(world: Path, *overrides: str, **changes: Any) -> Plan:
    request = Request(
        ("tinybert",),
        (str(world / "task.yaml"),),
        student=str(world / "half.yaml"),
        overrides=(*BRIEF, f"general.losses={TRIPLE}", "intermediate.losses=[{name: hidden_mse}]", *overrides),
        **{"teacher": str(world / "teacher"), "corpus": (str(world / "text.txt"),)} | changes,
    )
    return plan_all(request)[0]


def first_losses(folder: Path) -> dict[str, float]:
    return json.loads((folder / "log.jsonl").read_text().splitlines()[0])["losses"]


def test_a_teacher_without_a_head_has_one_trained_first(world: Path):
    planned = plan(world, "augment.enabled=false")
    reads = {node.id: node.inputs for node in planned.nodes}
    assert reads["encoder"]["masked_lm"] == "masked-lm"
    artifacts = run_stages(world, planned, "tokenize", "masked_lm", "general")
    assert set(first_losses(artifacts["encoder"].path)) == {"masked_soft_target", "masked_lm", "hidden_cosine"}


def test_the_encoder_of_a_new_head_is_a_trained_copy_that_the_general_stage_starts_from(world: Path):
    artifacts = run_stages(
        world, plan(world, "augment.enabled=false", "general.learning_rate=1.0e-12"), "tokenize", "masked_lm", "general"
    )
    folders = (world / "teacher", artifacts["masked-lm"].path, artifacts["encoder"].path)
    encoders: list[Any] = [load_encoder(folder) for folder in folders]
    own, copy, student = encoders
    assert torch.equal(copy.get_input_embeddings().weight, own.get_input_embeddings().weight)
    before, trained = (encoder.encoder.layer[0].attention.self.query.weight for encoder in (own, copy))
    assert (trained - before).abs().max() > 1e-4
    # each step moves a weight by at most its learning rate
    torch.testing.assert_close(student.transformer.layer[0].attention.q_lin.weight, trained, rtol=0, atol=1e-6)


def test_a_teachers_own_head_serves_and_the_student_begins_with_it(world: Path):
    """A student with all of its teacher's layers starts equal to the teacher, so that the soft targets are already met."""
    masked = run_stages(world, plan(world, "augment.enabled=false"), "tokenize", "masked_lm")["masked-lm"].path
    (world / "half.yaml").write_text(STUDENT.replace("layers: 1", "layers: 2"))
    (world / "again").mkdir()
    planned = plan(world, "augment.enabled=false", "general.dropout=0", teacher=str(masked))
    assert not any(node.id == "masked-lm" for node in planned.nodes)
    losses = first_losses(run_stages(world / "again", planned, "tokenize", "general")["encoder"].path)
    assert losses["masked_soft_target"] == pytest.approx(0, abs=1e-4)  # fp32
    assert losses["hidden_cosine"] == pytest.approx(0, abs=1e-4)
    assert losses["masked_lm"] > 0.1


def test_without_a_head_and_a_stage_that_trains_one_it_is_told(world: Path):
    with pytest.raises(
        CompressError, match=r"stage general: masked_soft_target: teacher teacher has no masked-LM head; put"
    ):
        plan(world, "masked_lm.enabled=false")


def test_without_text_both_are_left_out(world: Path):
    planned = plan(world, corpus=())
    assert not {"masked-lm", "encoder"} & {node.id for node in planned.nodes}


def test_a_fine_tuned_teacher_that_is_asked_is_said_to_be(world: Path):
    config = world / "teacher" / "config.json"
    names = {"id2label": {"0": "negative", "1": "positive"}, "label2id": {"negative": 0, "positive": 1}}
    changed = {**json.loads(config.read_text()), **names, "architectures": ["BertForSequenceClassification"]}
    config.write_text(json.dumps(changed))
    soft = "general.losses=[{name: masked_soft_target}]"
    assert "general distillation learns from the fine-tuned teacher: no other was given" in plan(world, soft).notes


def test_a_task_has_no_hidden_tokens(world: Path):
    with pytest.raises(CompressError, match="masked_soft_target needs plain text, which no distill stage reads"):
        plan(world, "prediction.losses=[{name: masked_soft_target}]")
