"""A teacher pre-trained on plain text: its plan, what it leaves for later stages, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pretrain_toys import CARD, plan, run_stages
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM

from compress.errors import CompressError
from compress.losses.hard_label import HardLabel
from compress.models.masked_lm import has_masked_lm_head
from compress.objective import Objective
from compress.pipeline.plan import Job
from compress.pipeline.training.run import TrainingRun
from compress.spec.stages import Distill


def test_the_stages_come_in_order_and_the_fine_tuning_begins_with_what_the_text_taught(world: Path):
    planned = plan(world)
    assert [node.id for node in planned.nodes][:4] == ["text", "pretrained", "teacher", "teacher-fp32"]
    artifacts = run_stages(world, planned, "tokenize", "pretrain", "finetune")
    before, after = (load_file(artifacts[name].path / "model.safetensors") for name in ("pretrained", "teacher"))
    shared = [name for name in before if name.startswith("bert.encoder")]
    assert shared
    # Two steps of fine-tuning at the default rate move a weight by no more than a few times that rate.
    assert all((before[name] - after[name]).abs().max() < 1e-3 for name in shared)
    assert plan(world, "pretrain.learning_rate=1e-4").nodes[2].key != planned.nodes[2].key


def test_the_checkpoint_is_a_masked_language_model_that_transformers_loads(world: Path):
    said: list[str] = []
    artifact = run_stages(world, plan(world), "tokenize", "pretrain", notices=said)["pretrained"]
    assert has_masked_lm_head(artifact.path)
    model, loading = AutoModelForMaskedLM.from_pretrained(artifact.path, output_loading_info=True)
    assert not loading["missing_keys"]
    table = model.get_input_embeddings().weight
    assert model.get_output_embeddings().weight.data_ptr() == table.data_ptr()
    assert len(table) == Tokenizer.from_file(str(world / "words" / "tokenizer.json")).get_vocab_size()
    info = artifact.info["held_out"]
    assert info["perplexity"] == pytest.approx(math.exp(info["loss"]))
    assert info["sequences"] == round(0.1 * (artifact.info["sequences"] + info["sequences"]))
    assert artifact.info["steps"] == 3
    assert f"pretrained: perplexity {info['perplexity']:.1f} of the masked tokens" in said[-1]


def test_it_learns_and_the_perplexity_of_text_that_it_has_not_seen_falls(world: Path):
    losses = []
    for steps in (1, 120):
        rate = ("pretrain.learning_rate=5e-3", f"pretrain.max_steps={steps}", "pretrain.epochs=100")
        folder = world / str(steps)
        folder.mkdir()
        losses.append(
            run_stages(folder, plan(world, *rate), "tokenize", "pretrain")["pretrained"].info["held_out"]["loss"]
        )
    assert losses[1] < 0.8 * losses[0]


@pytest.mark.parametrize(
    ("losses", "head"),
    [
        ("[{name: masked_lm, masks: 10, whole_words: true}, {name: next_sentence}]", True),
        ("[{name: masked_lm}, {name: sentence_order}]", True),
        ("[{name: next_sentence}]", False),
    ],
)
def test_the_objectives_combine(world: Path, losses: str, head: bool):
    artifact = run_stages(world, plan(world, f"pretrain.losses={losses}"), "tokenize", "pretrain")["pretrained"]
    log = [json.loads(line) for line in (artifact.path / "log.jsonl").read_text().splitlines()]
    assert all(name in losses for name in log[0]["losses"])
    assert has_masked_lm_head(artifact.path) == head
    assert ("held_out" in artifact.info) == head


def test_text_that_is_too_short_is_told_with_the_stage_and_the_files(world: Path):
    text = world / "text.txt"
    alone, many = "pretrain.losses=[{name: masked_lm}]", "pretrain.batch_size=10_000"
    for number, (overrides, problem) in enumerate(
        (
            ((many, alone), "the corpus has .* tokens; a batch of 10000 sequences of 16 needs 140,000"),
            ((many,), "the corpus gives 200 pairs of segments of 16 tokens, .*; a batch needs 10000"),
            (("pretrain.held_out=0.99", alone), "held_out keeps .* of the .* sequences of 16 tokens from training"),
        )
    ):
        folder = world / str(number)
        folder.mkdir()
        with pytest.raises(
            CompressError, match=f"recipe bert-pretrain, stage pretrain: {problem}.*; the text is {text}$"
        ):
            run_stages(folder, plan(world, *overrides), "tokenize", "pretrain")


def test_text_that_max_tokens_cuts_too_short_is_told_by_that(world: Path):
    with pytest.raises(CompressError, match=r"text\.txt, of which max_tokens takes 40 tokens: raise that first$"):
        run_stages(world, plan(world, "pretrain.max_tokens=40"), "tokenize", "pretrain")


def test_a_checkpoint_goes_on_with_its_own_head(world: Path):
    first = run_stages(world, plan(world), "tokenize", "pretrain")["pretrained"]
    again = plan(world, "pretrain.learning_rate=1e-9", teacher=str(first.path))
    (world / "again").mkdir()
    second = run_stages(world / "again", again, "tokenize", "pretrain")["pretrained"]
    before, after = (load_file(folder / "model.safetensors") for folder in (first.path, second.path))
    before.pop("bert.pooler.dense.weight", None)
    before.pop("bert.pooler.dense.bias", None)
    assert all(torch.allclose(after[name], tensor, atol=1e-6) for name, tensor in before.items())


def test_other_recipes_read_what_the_text_taught_as_the_teacher_before_its_fine_tuning(world: Path):
    text = (world / "tiny.yaml").write_text(
        "name: tiny\ntitle: tiny\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: 2\ninit: random\n"
    )
    assert text
    source = (Path(__file__).parents[2] / "recipes" / "tinybert-small.yaml").read_text()
    (world / "tinybert-small.yaml").write_text(
        source.replace("stages:\n", "stages:\n  - pretrain: {batch_size: 4, max_steps: 3}\n")
    )
    planned = plan(world, recipe=str(world / "tinybert-small.yaml"), student=str(world / "tiny.yaml"))
    reads = {node.id: node.inputs for node in planned.nodes}
    assert (
        reads["encoder"]["pretrained"]
        == reads["augmented"]["pretrained"]
        == reads["teacher"]["pretrained"]
        == "pretrained"
    )
    assert "masked-lm" not in reads  # it has its own head
    without = plan(world, recipe="tinybert-small", student=str(world / "tiny.yaml"))
    assert any("random weights before its fine-tuning" in note for note in without.notes)


def test_without_text_it_is_refused_unless_it_is_switched_off(world: Path):
    planned = plan(world, "pretrain.enabled=false", corpus=())
    assert planned.nodes[0].id == "teacher"
    for words in ((), ("pretrain.enabled=true",)):
        with pytest.raises(
            CompressError, match=r"stage pretrain: no plain text was given; add it with --corpus PATH, or leave"
        ):
            plan(world, *words, corpus=())


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "pretrain.losses=[{name: next_sentence}, {name: sentence_order}]",
            "next_sentence and sentence_order read pairs",
        ),
        ("pretrain.losses=[{name: hidden_mse}]", "unknown name `hidden_mse`"),
        ("pretrain.losses=[{name: masked_lm, weight: 0}]", "at least one needs a weight above 0"),
        ("pretrain.max_length=64", "max_length is 64 tokens and teacher own has 32 positions"),
        ("pretrain.max_length=7", "stage pretrain: max_length is 7; expected at least 8 tokens for a sequence"),
    ],
)
def test_what_does_not_go_together_is_found_before_anything_runs(world: Path, override: str, message: str):
    from compress.pipeline.preflight import preflight

    with pytest.raises(CompressError, match=message):
        preflight([plan(world, override)], world / "runs")


def test_a_card_has_one_vocabulary_and_its_tokenizer_is_there(world: Path):
    card = world / "own.yaml"
    card.write_text(card.read_text().replace("tokenizer:", "vocabulary: 50, tokenizer:"))
    with pytest.raises(
        CompressError, match="vocabulary: `tokenizer` has a vocabulary of its own; leave one of the two out"
    ):
        plan(world)
    card.write_text(CARD.format("bert-mini"))
    with pytest.raises(
        CompressError, match=r"random\.tokenizer: bert-mini has random weights and no tokenizer of its own"
    ):
        plan(world)
    card.write_text(CARD.format(world / "nowhere"))
    with pytest.raises(CompressError, match=r"teacher own: random\.tokenizer: .*nowhere: no such folder"):
        plan(world)
    (world / "empty").mkdir()
    card.write_text(CARD.format(world / "empty"))
    with pytest.raises(CompressError, match=r"empty: expected tokenizer\.json"):
        plan(world)


@pytest.mark.parametrize("whole", [None, "its rounding is part of the forward"])
def test_what_reads_weights_beside_a_forward_is_not_split(whole: str | None):
    said: list[str] = []
    context: Any = SimpleNamespace(fsdp=True, notice=said.append)
    node: Any = SimpleNamespace(id="student", spec=Distill())
    job: Any = Job(None, node, {}, context, Path(), Path())  # type: ignore[arg-type]
    run, splits = (
        TrainingRun(job, torch.nn.Linear(1, 1), Objective((HardLabel(),)), unsharded_because=whole),
        whole is None,
    )
    assert run._shards_model() == splits
    assert [line.startswith("student: every process holds the whole model") for line in said] == [True] * (not splits)
    context.fsdp = False
    assert not run._shards_model()


def test_heads_that_do_not_divide_the_hidden_size_are_refused(world: Path):
    card = world / "own.yaml"
    card.write_text(card.read_text().replace("heads: 2", "heads: 3"))
    with pytest.raises(CompressError, match="heads: expected a divisor of hidden, 16; found 3"):
        plan(world)
