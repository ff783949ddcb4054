"""The start of a teacher made from plain text: a smaller model, co-occurrence counts, or random weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrain_toys import GROWN, plan, run_stages
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModel
from worlds import encoder_world

from compress.cli.plans import plan_document
from compress.errors import CompressError
from compress.pipeline.plan import Context, Job, Listener
from compress.pipeline.stages.registry import kind_of
from compress.pipeline.training import initial_teacher
from compress.store import Artifact


@pytest.mark.parametrize("losses", ["[{name: masked_lm}]", "[{name: next_sentence}]"])
def test_a_teacher_grows_from_a_smaller_one_and_goes_on_where_that_was(world: Path, losses: str):
    first = run_stages(world, plan(world, f"pretrain.losses={losses}"), "tokenize", "pretrain")["pretrained"]
    (world / "own.yaml").write_text(GROWN.format(first.path, 32, 4))
    (world / "again").mkdir()
    planned = plan(world, "pretrain.learning_rate=1e-9", f"pretrain.losses={losses}")
    assert planned.sizes["teacher"].hidden == 32
    artifacts = run_stages(world / "again", planned, "tokenize", "pretrain", "finetune")
    batch = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]])}
    outputs = []
    for folder in (first.path, artifacts["pretrained"].path):
        model = AutoModel.from_pretrained(folder).eval()
        with torch.no_grad():
            outputs.append(model(**batch).last_hidden_state)
    torch.testing.assert_close(outputs[1], outputs[0].repeat(1, 1, 2), rtol=1e-4, atol=1e-4)
    if "masked_lm" in losses:
        known, grown = (part.info["held_out"]["loss"] for part in (first, artifacts["pretrained"]))
        assert grown == pytest.approx(known, rel=1e-3)


def test_what_a_small_model_cannot_grow_into_is_found_at_once(world: Path):
    first = run_stages(world, plan(world), "tokenize", "pretrain")["pretrained"]
    (world / "own.yaml").write_text(GROWN.format(first.path, 24, 3))
    with pytest.raises(CompressError, match=r"teacher own: random\.hidden: expected a multiple of the 16"):
        plan(world)
    (world / "own.yaml").write_text(
        GROWN.format(first.path, 32, 4).replace("grow_from", "tokenizer: minilm-l6, grow_from")
    )
    with pytest.raises(CompressError, match="tokenizer: `grow_from` has a vocabulary of its own"):
        plan(world)


def test_random_weights_begin_with_what_is_counted_in_the_text(world: Path):
    """Before any noticeable training, held-out text is likelier than with randomly drawn weights."""
    losses = {}
    for start in ("random", "cooccurrence"):
        (world / start).mkdir()
        still = ("pretrain.learning_rate=1e-9", "pretrain.max_steps=1", f"pretrain.start={start}")
        artifact = run_stages(world / start, plan(world, *still), "tokenize", "pretrain")["pretrained"]
        losses[start] = artifact.info["held_out"]["loss"]
        assert ("start" in artifact.info) == (start == "cooccurrence")
    assert losses["cooccurrence"] < losses["random"] - 0.1
    tokenizer = Tokenizer.from_file(str(world / "words" / "tokenizer.json"))
    ids = set(tokenizer.encode((world / "text.txt").read_text(), add_special_tokens=False).ids)
    assert artifact.info["start"]["words"] == len(ids)
    assert artifact.info["start"]["pairs"] > 50
    assert plan(world, "pretrain.start=random").nodes[1].key != plan(world).nodes[1].key


def test_weights_of_a_checkpoint_do_not_begin_anew(world: Path, tiny_checkpoint: Any, toy_tokenizer: Tokenizer):
    text = (world / "text.txt").read_text()
    teacher = encoder_world(world, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    planned = plan(world, teacher=str(teacher))
    artifact = run_stages(world, planned, "tokenize", "pretrain")["pretrained"]
    assert "start" not in artifact.info
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
        ("layers: 2,", "architecture: ernie, layers: 2,", " is for a bert or a roberta, found ernie;"),
        ("hidden: 16, heads: 2", "hidden: 16, heads: 16", ": heads are 1 wide, too narrow to tell positions;"),
    ],
)
def test_a_start_that_does_not_fit_is_refused_before_anything_runs(world: Path, old: str, new: str, problem: str):
    card = world / "own.yaml"
    card.write_text(card.read_text().replace(old, new))
    message = f"stage pretrain: start: cooccurrence{problem} say --set pretrain.start=random"
    with pytest.raises(CompressError, match=re.escape(message)):
        plan(world)
    assert plan(world, "pretrain.start=random").nodes


@pytest.mark.parametrize("losses", ["[{name: masked_lm}]", "[{name: next_sentence}]"])
def test_what_was_counted_is_not_counted_again_by_a_training_that_goes_on(
    world: Path, losses: str, monkeypatch: pytest.MonkeyPatch
):
    planned = plan(world, f"pretrain.losses={losses}")
    first = run_stages(world, planned, "tokenize", "pretrain")["pretrained"]
    said: list[str] = []

    class Notices(Listener):
        def notice(self, line: str) -> None:
            said.append(line)

    monkeypatch.setattr(initial_teacher, "count_pairs", None)
    text, node = planned.nodes[0], planned.nodes[1]
    context = Context(planned.task, "fp32", 1, Notices())
    inputs = {"text": Artifact(world / f"{text.key}-out", text.key, {})}
    (world / "again").mkdir()
    job = Job(planned, node, inputs, context, world / "again", world / f"{node.key}-work")
    again = kind_of(node).run(job)
    assert again["start"] == first.info["start"]
    assert again.get("held_out") == first.info.get("held_out")
    assert said[0] == "pretrained: continues after step 3"
    mine, theirs = (load_file(folder / "model.safetensors") for folder in (world / "again", first.path))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
