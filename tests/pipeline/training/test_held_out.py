"""The share of the text that pre-training holds out, and the speed that the stage reports."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pretrain_toys import plan, run_stages

from compress.errors import CompressError
from compress.pipeline.plan import Context, Job, Listener
from compress.pipeline.stages.registry import kind_of
from compress.pipeline.training import held_out


def test_held_out_text_is_read_in_micro_batches_and_in_less_where_memory_runs_out(
    world: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    sizes: list[int] = []
    limit = 10**9
    whole = held_out.masked_text_loss

    def loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        sizes.append(len(batch["input_ids"]))
        if sizes[-1] > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(model, batch)

    monkeypatch.setattr(held_out, "masked_text_loss", loss)
    planned = plan(world, "pretrain.micro_batch_size=3")
    expected = run_stages(world, planned, "tokenize", "pretrain")["pretrained"].info["held_out"]
    assert max(sizes) == 3
    sizes.clear()
    limit = 1
    (world / "again").mkdir()
    actual = run_stages(world / "again", planned, "tokenize", "pretrain")["pretrained"].info["held_out"]
    assert actual["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    assert (actual["tokens"], actual["sequences"]) == (expected["tokens"], expected["sequences"])
    assert sizes == [3] + [1] * expected["sequences"]
    limit = 0
    (world / "never").mkdir()
    with pytest.raises(CompressError, match="out of memory with one held-out sequence"):
        run_stages(world / "never", planned, "tokenize", "pretrain")
    assert len([*(world / "never").glob("*-work/state/state.safetensors")]) == 1  # the trained state is kept


def test_a_stage_that_had_no_step_left_tells_its_speed(world: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("after the last step")

    planned = plan(world)
    (text,) = run_stages(world, planned, "tokenize").values()
    node = next(node for node in planned.nodes if node.kind.name == "pretrain")
    out, work = world / "o", world / "w"
    out.mkdir()
    work.mkdir()
    job = Job(planned, node, {"text": text}, Context(planned.task, "fp32", 1, Listener()), out, work)
    with monkeypatch.context() as harm:
        harm.setattr(held_out, "held_out_loss", fails)
        with pytest.raises(RuntimeError):
            kind_of(node).run(job)
    steps = len((work / "log.jsonl").read_text().splitlines())
    info = kind_of(node).run(job)
    assert len((work / "log.jsonl").read_text().splitlines()) == steps == info["steps"] == 3
    assert info["tokens_per_second"] > 0
    assert info["model_flops_per_second"] > 0


def test_nothing_is_held_out_where_nothing_is_said_of_it(world: Path):
    counts = []
    for number, losses in enumerate(
        (
            "[{name: next_sentence}]",
            "[{name: next_sentence}, {name: masked_lm, weight: 0}]",
            "[{name: next_sentence}, {name: masked_lm}]",
        )
    ):
        (world / str(number)).mkdir()
        artifact = run_stages(world / str(number), plan(world, f"pretrain.losses={losses}"), "tokenize", "pretrain")[
            "pretrained"
        ]
        counts.append(artifact.info["sequences"] + artifact.info.get("held_out", {}).get("sequences", 0))
        assert ("held_out" in artifact.info) == (number == 2)
    assert len(set(counts)) == 1


def test_the_perplexity_of_a_model_that_diverged_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "_loss_of", lambda model, data, part: (1e4, 5))
    data: Any = SimpleNamespace(text=SimpleNamespace(count=3))
    info = held_out.held_out_loss(torch.nn.Identity(), data, size=2)
    assert info["loss"] == 1e4 and 1e300 < info["perplexity"] < math.inf
