"""Teachers of every family with random weights: they learn from text and task, and are ordinary checkpoints of their family."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import covering, keeping
from pretrain_toys import plan as plan_of
from pretrain_toys import run_stages
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

from compress.corpus import corpus_sources, train_vocabulary
from compress.errors import CompressError
from compress.evaluate import predict_onnx
from compress.models.cards import RandomInit
from compress.models.checkpoints.folders import load_tokenizer, pad_id, save_tokenizer
from compress.models.dimensions import dimensions, read_config, usable_positions
from compress.models.features.predict import predict_logits
from compress.models.masked_lm import masked_text_loss
from compress.models.random_models import random_classifier, random_config
from compress.pipeline import Plan

pytestmark = pytest.mark.end_to_end

CARD = """
name: own
title: own
licence: Apache-2.0
random: {{architecture: {0}, layers: 3, hidden: 32, heads: 2, intermediate: 64, max_positions: 32{1}}}
finetune: {{max_steps: 3, batch_size: 8}}
"""
MORE = {"bert": "", "roberta": "", "albert": ", embedding: 16", "mpnet": "", "ernie": ""}
NAMES = {"bert": "Bert", "roberta": "Roberta", "albert": "Albert", "mpnet": "MPNet", "ernie": "Ernie"}
FAMILIES = pytest.mark.parametrize("family", list(NAMES))


def plan(folder: Path, *overrides: str, **changes: Any) -> Plan:
    """Return a plan; ALBERT, MPNet and ERNIE do not support `pretrain.start=cooccurrence`."""
    card = (folder / "own.yaml").read_text()
    random = any(f"architecture: {family}" in card for family in ("albert", "mpnet", "ernie"))
    random = ("pretrain.start=random",) if random else ()
    return plan_of(folder, *random, *overrides, **changes)


@pytest.fixture
def teach(world: Path):
    """Return a function: family -> the world with a card and a tokenizer of that family."""

    def make(family: str, more: str = ', tokenizer: "./words"') -> Path:
        kind: Any = "bpe" if family in ("roberta", "mpnet") else "wordpiece"
        size = 320 if kind == "bpe" else 80
        tokenizer = train_vocabulary(corpus_sources([str(world / "text.txt")]), kind=kind, size=size)
        save_tokenizer(tokenizer, world / "words")
        (world / "own.yaml").write_text(CARD.format(family, MORE[family] + more))
        return world

    return make


@pytest.mark.slow
@pytest.mark.parametrize("family", ["roberta", "albert"])
def test_masked_tokens_are_learnt_from_nothing(teach, family: str):
    folder = teach(family)
    rate = ("pretrain.learning_rate=5e-3", "pretrain.max_steps=60", "pretrain.epochs=100")
    planned = plan(folder, "pretrain.start=random", *rate)
    artifact = run_stages(folder, planned, "tokenize", "pretrain")["pretrained"]
    log = [json.loads(line) for line in (artifact.path / "log.jsonl").read_text().splitlines()]
    rows = planned.sizes["teacher"].vocabulary
    assert log[0]["losses"]["masked_lm"] == pytest.approx(math.log(rows), rel=0.05)
    assert artifact.info["held_out"]["loss"] < 0.8 * math.log(rows)


@FAMILIES
def test_the_pretrained_checkpoint_is_its_familys_own(teach, family: str):
    """transformers computes the same loss at the masked positions, and the same tokens."""
    folder = teach(family)
    planned = plan(folder)
    artifact = run_stages(folder, planned, "tokenize", "pretrain")["pretrained"]
    config = read_config(artifact.path)
    assert config["architectures"] == [f"{NAMES[family]}ForMaskedLM"]
    assert usable_positions(config) == 32
    model, loading = AutoModelForMaskedLM.from_pretrained(artifact.path, output_loading_info=True)
    assert not loading["missing_keys"]
    ours, theirs = load_tokenizer(artifact.path), AutoTokenizer.from_pretrained(artifact.path)
    text = "the film is good and not " + theirs.mask_token
    assert theirs(text)["input_ids"] == ours.encode(text).ids
    assert theirs.pad_token_id == pad_id(config) == model.config.pad_token_id
    batch = dict(theirs([text, "the film"], return_tensors="pt", padding=True))
    batch.setdefault("token_type_ids", torch.zeros_like(batch["input_ids"]))
    labels = torch.where(batch["input_ids"] == theirs.mask_token_id, 7, -100)
    whole = model.eval()(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
    assert masked_text_loss(model, {**batch, "labels": labels}).item() == pytest.approx(whole.item(), rel=1e-5)


@pytest.mark.parametrize(("pairs", "family"), covering(["next_sentence", "sentence_order"], NAMES))
def test_pairs_are_read_by_every_family(teach, family: str, pairs: str):
    folder = teach(family)
    losses = f"pretrain.losses=[{{name: masked_lm, whole_words: true}}, {{name: {pairs}}}]"
    artifact = run_stages(folder, plan(folder, losses), "tokenize", "pretrain")["pretrained"]
    log = [json.loads(line) for line in (artifact.path / "log.jsonl").read_text().splitlines()]
    assert log[0]["losses"][pairs] == pytest.approx(math.log(2), abs=0.1)


@pytest.mark.parametrize("family", keeping(NAMES, ["bert", "mpnet"]))
def test_it_is_fine_tuned_exported_and_quantized(teach, family: str):
    folder = teach(family)
    (folder / "task.yaml").write_text((folder / "task.yaml").read_text().replace("train: 40", "train: 160"))
    planned = plan(folder, "quantize.method=static", "quantize.calibration_examples=32")
    artifacts = run_stages(folder, planned, "tokenize", "pretrain", "finetune", "export", "quantize")
    teacher = artifacts["teacher"].path
    model = AutoModelForSequenceClassification.from_pretrained(teacher).eval()
    assert type(model).__name__ == f"{NAMES[family]}ForSequenceClassification"
    tuning, pad = planned.task.encoded("tuning", load_tokenizer(teacher), 16), pad_id(read_config(teacher))
    torch_logits = predict_logits(model, tuning, pad)
    fp32 = predict_onnx(artifacts["teacher-fp32"].path / "model.onnx", tuning, pad, threads=1)
    int8 = predict_onnx(artifacts["teacher-int8"].path / "model_quantized.onnx", tuning, pad, threads=1)
    np.testing.assert_allclose(fp32, torch_logits, atol=1e-5)  # fp32 sums in another order
    assert artifacts["teacher-fp32"].info["graph"] == "fast"
    assert artifacts["teacher-int8"].info["int8_matmuls"] > 0
    assert np.abs(int8 - fp32).max() < 0.1 * max(1, np.abs(fp32).max())


@pytest.mark.parametrize("family", ["roberta", "albert"])
def test_without_a_tokenizer_it_has_the_embedded_tasks_words(teach, family: str):
    planned = plan(teach(family, ", vocabulary: 400"), "pretrain.enabled=false", corpus=())
    kinds = {"roberta": "BPE", "albert": "WordPiece"}
    assert json.loads(planned.teacher.tokenizer.to_str())["model"]["type"] == kinds[family]
    model = run_stages(teach(family, ", vocabulary: 400"), planned, "finetune")["teacher"].path
    config = read_config(model)
    assert config["pad_token_id"] == {"roberta": 1, "albert": 0}[family]
    assert config["bos_token_id"] == {"roberta": 0, "albert": 2}[family]


@FAMILIES
def test_sizes_are_those_of_transformers(family: str):
    init = RandomInit.model_validate(
        {"architecture": family, "layers": 3, "hidden": 32, "heads": 2, "intermediate": 64, "max_positions": 32}
    )
    config = random_config(init)
    model: Any = random_classifier(config, kind="classification", labels=("no", "yes"))
    assert dimensions(config, classes=2).parameters == model.num_parameters()


@pytest.mark.parametrize(
    ("family", "more", "message"),
    [
        ("roberta", ", embedding: 16", "embedding: the tables of a `roberta` are as wide as `hidden`"),
        ("roberta", ", grow_from: minilm-l6", "grow_from: a `roberta` cannot grow"),
        ("electra", "", "architecture"),
        ("roberta", ", vocabulary: 100", "the size of the vocabulary: expected at least 261"),
    ],
)
def test_what_a_family_has_not_is_told(world: Path, family: str, more: str, message: str):
    (world / "own.yaml").write_text(CARD.format(family, more))
    with pytest.raises(CompressError, match=message):
        _ = plan(world).teacher.tokenizer
