"""Stages that take no optimizer steps say how far they have come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.pipeline import Listener, Request, plan_all
from compress.pipeline.plan import Context, Job

STUDENT = "name: small\ntitle: Small\narchitecture: bert\nlayers: 1\n"


class Recorder(Listener):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int | None]] = []

    def progress(self, what: str, done: int, total: int | None) -> None:
        self.seen.append((what, done, total))


@pytest.fixture
def request_(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Request:
    """A teacher that is a masked language model, and some text."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="the film is not bad .\n" * 50)
    BertForMaskedLM(BertConfig.from_pretrained(teacher)).save_pretrained(teacher)
    (tmp_path / "small.yaml").write_text(STUDENT)
    return Request(
        ("tinybert-small",),
        (str(tmp_path / "task.yaml"),),
        teacher=str(teacher),
        student=str(tmp_path / "small.yaml"),
        corpus=(str(tmp_path / "text.txt"),),
        overrides=("augment.copies=2",),
        root=tmp_path / "runs",
    )


@pytest.mark.parametrize(("kind", "what"), [("augment", "words"), ("tokenize", "tokens")])
def test_how_far_a_stage_has_come_is_told(request_: Request, tmp_path: Path, kind: str, what: str) -> None:
    (plan,) = plan_all(request_)
    node = next(node for node in plan.nodes if node.kind.name == kind)
    listener = Recorder()
    for name in ("out", "work"):
        (tmp_path / name).mkdir()
    context = Context(plan.task, "fp32", 1, listener)
    node.kind.run(Job(plan, node, {}, context, tmp_path / "out", tmp_path / "work"))
    named, done, total = listener.seen[-1]
    assert named == what
    assert done > 0
    assert total == {"augment": done, "tokenize": getattr(node.spec, "max_tokens", 0)}[kind]
