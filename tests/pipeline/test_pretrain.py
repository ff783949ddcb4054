"""A teacher made of plain text: what is planned, what is left for the stages after it, what is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModel, AutoModelForMaskedLM
from worlds import TASK, encoder_world

from compress.cli.plans import plan_document
from compress.errors import CompressError
from compress.models.masked_lm import has_masked_lm_head
from compress.pipeline import Plan, Request, plan_all, starting
from compress.pipeline.context import Context, Listener
from compress.pipeline.stages import STAGES
from compress.pipeline.training_stages import TrainingRun
from compress.spec.stages import Distill, QuantizeAware
from compress.store import Artifact

CARD = """
name: own
title: own
licence: Apache-2.0
random: {{layers: 2, hidden: 16, heads: 2, intermediate: 32, max_positions: 32, tokenizer: "{0}"}}
finetune: {{max_steps: 2, batch_size: 4}}
"""
QUICK = ("pretrain.batch_size=4", "pretrain.max_steps=3", "pretrain.max_length=16", "pretrain.held_out=0.1")


@pytest.fixture
def world(tmp_path: Path, toy_tokenizer: Tokenizer) -> Path:
    (tmp_path / "words").mkdir()
    toy_tokenizer.save(str(tmp_path / "words" / "tokenizer.json"))
    (tmp_path / "own.yaml").write_text(CARD.format(tmp_path / "words"))
    (tmp_path / "task.yaml").write_text(TASK)
    sentences = ("the film is good .", "the story is not bad .", "a very long old film .")
    documents = [" ".join(sentences[(i + j) % 3] for j in range(4)) for i in range(60)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents) + "\n")
    return tmp_path


def plan(world: Path, *overrides: str, recipe: str = "bert-pretrain", **changes: Any) -> Plan:
    request: dict[str, Any] = {"teacher": str(world / "own.yaml"), "corpus": (str(world / "text.txt"),)}
    quick = QUICK if recipe == "bert-pretrain" else ()
    return plan_all(
        Request((recipe,), (str(world / "task.yaml"),), overrides=(*quick, *overrides), **(request | changes))
    )[0]


def made(world: Path, planned: Plan, *kinds: str, notices: list[str] | None = None) -> dict[str, Artifact]:
    """What the stages of these kinds leave, in the plan's order; what they say of it goes to `notices`."""
    found: dict[str, Artifact] = {}
    context = Context(planned.task, "fp32", 1, Listener(), notices=[] if notices is None else notices)
    for node in planned.nodes:
        if node.kind in kinds:
            out, work = (world / f"{node.key}-{what}" for what in ("out", "work"))
            out.mkdir()
            work.mkdir()
            inputs = {role: found[name] for role, name in node.inputs.items()}
            found[node.id] = Artifact(out, node.key, STAGES[node.kind](planned, node, inputs, context, out, work))
    return found


def test_the_stages_come_in_order_and_the_fine_tuning_begins_with_what_the_text_taught(world: Path):
    planned = plan(world)
    assert [node.id for node in planned.nodes][:4] == ["text", "pretrained", "teacher", "teacher-fp32"]
    found = made(world, planned, "tokenize", "pretrain", "finetune")
    before, after = (load_file(found[name].path / "model.safetensors") for name in ("pretrained", "teacher"))
    shared = [name for name in before if name.startswith("bert.encoder")]
    assert shared
    # Two steps of fine-tuning at the default rate move a weight by no more than a few of it.
    assert all((before[name] - after[name]).abs().max() < 1e-3 for name in shared)
    assert plan(world, "pretrain.learning_rate=1e-4").nodes[2].key != planned.nodes[2].key


def test_the_checkpoint_is_a_masked_language_model_that_transformers_loads(world: Path):
    said: list[str] = []
    found = made(world, plan(world), "tokenize", "pretrain", notices=said)["pretrained"]
    assert has_masked_lm_head(found.path)
    model, loading = AutoModelForMaskedLM.from_pretrained(found.path, output_loading_info=True)
    assert not loading["missing_keys"]
    table = model.get_input_embeddings().weight
    assert model.get_output_embeddings().weight.data_ptr() == table.data_ptr()
    assert len(table) == Tokenizer.from_file(str(world / "words" / "tokenizer.json")).get_vocab_size()
    info = found.info["held_out"]
    assert info["perplexity"] == pytest.approx(math.exp(info["loss"]))
    assert info["sequences"] == round(0.1 * (found.info["sequences"] + info["sequences"]))
    assert found.info["steps"] == 3
    assert f"pretrained: perplexity {info['perplexity']:.1f} of the hidden tokens" in said[-1]


def test_it_learns_and_the_perplexity_of_text_that_it_has_not_seen_falls(world: Path):
    losses = []
    for steps in (1, 120):
        rate = ("pretrain.learning_rate=5e-3", f"pretrain.max_steps={steps}", "pretrain.epochs=100")
        folder = world / str(steps)
        folder.mkdir()
        losses.append(made(folder, plan(world, *rate), "tokenize", "pretrain")["pretrained"].info["held_out"]["loss"])
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
    found = made(world, plan(world, f"pretrain.losses={losses}"), "tokenize", "pretrain")["pretrained"]
    log = [json.loads(line) for line in (found.path / "log.jsonl").read_text().splitlines()]
    assert all(name in losses for name in log[0]["losses"])
    assert has_masked_lm_head(found.path) == head
    assert ("held_out" in found.info) == head


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
            made(folder, plan(world, *overrides), "tokenize", "pretrain")


def test_a_checkpoint_goes_on_with_its_own_head(world: Path):
    first = made(world, plan(world), "tokenize", "pretrain")["pretrained"]
    again = plan(world, "pretrain.learning_rate=1e-9", teacher=str(first.path))
    (world / "again").mkdir()
    found = made(world / "again", again, "tokenize", "pretrain")["pretrained"]
    before, after = (load_file(folder / "model.safetensors") for folder in (first.path, found.path))
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
    assert "masked-lm" not in reads  # it has a head of its own
    without = plan(world, recipe="tinybert-small", student=str(world / "tiny.yaml"))
    assert any("random weights before its fine-tuning" in note for note in without.notes)


def test_without_text_it_is_left_out_and_said_so(world: Path):
    planned = plan(world, corpus=())
    assert planned.nodes[0].id == "teacher"
    assert planned.notes == ("pretrain is left out: no plain text was given; say --corpus PATH",)
    with pytest.raises(CompressError, match="stage pretrain: no plain text was given"):
        plan(world, "pretrain.enabled=true", corpus=())


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


GROWN = """
name: own
title: own
licence: Apache-2.0
random: {{layers: 2, hidden: {1}, heads: {2}, intermediate: 64, max_positions: 32, grow_from: "{0}"}}
finetune: {{max_steps: 2, batch_size: 4}}
"""


@pytest.mark.parametrize("losses", ["[{name: masked_lm}]", "[{name: next_sentence}]"])
def test_a_teacher_grows_from_a_smaller_one_and_goes_on_where_that_was(world: Path, losses: str):
    first = made(world, plan(world, f"pretrain.losses={losses}"), "tokenize", "pretrain")["pretrained"]
    (world / "own.yaml").write_text(GROWN.format(first.path, 32, 4))
    (world / "again").mkdir()
    planned = plan(world, "pretrain.learning_rate=1e-9", f"pretrain.losses={losses}")
    assert planned.sizes["teacher"].hidden == 32
    found = made(world / "again", planned, "tokenize", "pretrain", "finetune")
    batch = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]])}
    outputs = []
    for folder in (first.path, found["pretrained"].path):
        model = AutoModel.from_pretrained(folder).eval()
        with torch.no_grad():
            outputs.append(model(**batch).last_hidden_state)
    torch.testing.assert_close(outputs[1], outputs[0].repeat(1, 1, 2), rtol=1e-4, atol=1e-4)
    if "masked_lm" in losses:
        known, grown = (part.info["held_out"]["loss"] for part in (first, found["pretrained"]))
        assert grown == pytest.approx(known, rel=1e-3)


def test_what_a_small_model_cannot_grow_into_is_found_at_once(world: Path):
    first = made(world, plan(world), "tokenize", "pretrain")["pretrained"]
    (world / "own.yaml").write_text(GROWN.format(first.path, 24, 3))
    with pytest.raises(CompressError, match=r"teacher own: random\.hidden: expected a multiple of the 16"):
        plan(world)
    (world / "own.yaml").write_text(
        GROWN.format(first.path, 32, 4).replace("grow_from", "tokenizer: minilm-l6, grow_from")
    )
    with pytest.raises(CompressError, match="tokenizer: `grow_from` has a vocabulary of its own"):
        plan(world)


def test_random_weights_begin_with_what_is_counted_in_the_text(world: Path):
    """Before training has moved anything to speak of, held-out text is likelier than to weights as they are drawn."""
    losses = {}
    for start in ("random", "cooccurrence"):
        (world / start).mkdir()
        still = ("pretrain.learning_rate=1e-9", "pretrain.max_steps=1", f"pretrain.start={start}")
        found = made(world / start, plan(world, *still), "tokenize", "pretrain")["pretrained"]
        losses[start] = found.info["held_out"]["loss"]
        assert ("start" in found.info) == (start == "cooccurrence")
    assert losses["cooccurrence"] < losses["random"] - 0.1
    tokenizer = Tokenizer.from_file(str(world / "words" / "tokenizer.json"))
    ids = set(tokenizer.encode((world / "text.txt").read_text(), add_special_tokens=False).ids)
    assert found.info["start"]["words"] == len(ids)
    assert found.info["start"]["pairs"] > 50
    assert plan(world, "pretrain.start=random").nodes[1].key != plan(world).nodes[1].key


@pytest.mark.parametrize(
    ("settings", "features", "splits"),
    [
        (Distill(), {"logits"}, True),
        (Distill(), {"logits", "spread[2]"}, False),
        (QuantizeAware(), {"logits"}, False),
    ],
)
def test_what_reads_weights_beside_a_forward_is_not_split(settings: Any, features: set[str], splits: bool):
    said: list[str] = []
    context: Any = SimpleNamespace(fsdp=True, notice=said.append)
    node: Any = SimpleNamespace(id="student", spec=settings)
    objective = SimpleNamespace(student_features=features)
    run = TrainingRun(node, {}, context, Path(), Path(), torch.nn.Linear(1, 1), objective)
    assert run._splits() == splits
    assert [line.startswith("student: every process holds the whole model") for line in said] == [True] * (not splits)
    context.fsdp = False
    assert not run._splits()


def test_weights_of_a_checkpoint_do_not_begin_anew(world: Path, tiny_checkpoint: Any, toy_tokenizer: Tokenizer):
    text = (world / "text.txt").read_text()
    teacher = encoder_world(world, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    planned = plan(world, teacher=str(teacher))
    found = made(world, planned, "tokenize", "pretrain")["pretrained"]
    assert "start" not in found.info
    assert all("start" not in stage["settings"] for stage in plan_document(planned, world)["stages"])
    assert any("start" in stage["settings"] for stage in plan_document(plan(world), world)["stages"])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "layers: 2,",
            "architecture: albert, layers: 2,",
            " is for a bert or a roberta, found albert; take recipe albert-pretrain, or",
        ),
        ("hidden: 16, heads: 2", "hidden: 16, heads: 16", ": heads are 1 wide, too narrow to tell positions;"),
    ],
)
def test_a_start_that_does_not_fit_is_refused_before_anything_runs(world: Path, old: str, new: str, problem: str):
    card = world / "own.yaml"
    card.write_text(card.read_text().replace(old, new))
    told = f"stage pretrain: start: cooccurrence{problem} say --set pretrain.start=random"
    with pytest.raises(CompressError, match=re.escape(told)):
        plan(world)
    assert plan(world, "pretrain.start=random").nodes


def test_what_was_counted_is_not_counted_again_by_a_training_that_goes_on(world: Path, monkeypatch: pytest.MonkeyPatch):
    planned = plan(world)
    first = made(world, planned, "tokenize", "pretrain")["pretrained"]
    said: list[str] = []

    class Told(Listener):
        def notice(self, line: str) -> None:
            said.append(line)

    monkeypatch.setattr(starting, "count_pairs", None)
    text, node = planned.nodes[0], planned.nodes[1]
    context = Context(planned.task, "fp32", 1, Told())
    inputs = {"text": Artifact(world / f"{text.key}-out", text.key, {})}
    (world / "again").mkdir()
    again = STAGES["pretrain"](planned, node, inputs, context, world / "again", world / f"{node.key}-work")
    assert again["start"] == first.info["start"]
    assert again["held_out"] == first.info["held_out"]
    assert said[0] == "pretrained: goes on after step 3"


def test_heads_that_do_not_divide_the_hidden_size_are_refused(world: Path):
    card = world / "own.yaml"
    card.write_text(card.read_text().replace("heads: 2", "heads: 3"))
    with pytest.raises(CompressError, match="heads: expected a divisor of hidden, 16; found 3"):
        plan(world)
