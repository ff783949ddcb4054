"""`attention: document` in the stages on plain text: it reaches every model, and changes no key where it is absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.models.features import named
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.plan import Context, Job, Listener
from compress.pipeline.stages.registry import kind_of
from compress.spec.stages import General, MaskedLm, Pretrain
from compress.store import Artifact

STUDENT = "name: small\ntitle: small\narchitecture: bert\nlayers: 2\nhidden: 16\nheads: 2\ninit: random\n"
RECIPES = {"pretrain": "bert-pretrain", "masked_lm": "tinybert", "general": "tinybert"}


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    text = "the film is good .\n\nthe film is not bad . the film is .\n\n" * 60
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    (tmp_path / "small.yaml").write_text(STUDENT)
    return tmp_path


def plan(world: Path, kind: str, *overrides: str) -> Plan:
    quick = tuple(f"{kind}.{field}" for field in ("batch_size=8", "max_steps=2", "max_length=16"))
    if kind == "pretrain":  # the recipe reads pairs, which this attention does not change
        quick += ("pretrain.losses=[{name: masked_lm}]",)
    request = Request(
        (RECIPES[kind],),
        (str(world / "task.yaml"),),
        teacher=str(world / "teacher"),
        student=None if kind == "pretrain" else str(world / "small.yaml"),
        corpus=(str(world / "text.txt"),),
        overrides=(*quick, *overrides),
    )
    return plan_all(request)[0]


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the attention masks of all forward passes."""
    attention_masks: list[Any] = []
    inputs = named.model_inputs

    def keep(model: Any, batch: Any) -> Any:
        tensors = inputs(model, batch)
        attention_masks.append(tensors["attention_mask"])
        return tensors

    monkeypatch.setattr(named, "model_inputs", keep)
    return attention_masks


@pytest.mark.parametrize("kind", RECIPES)
def test_every_forward_of_the_stage_keeps_documents_apart(world: Path, masks: list[Any], kind: str):
    planned = plan(world, kind, f"{kind}.attention=document")
    context = Context(planned.task, "fp32", 1, Listener())
    artifacts: dict[str, Artifact] = {}
    for node in planned.nodes:
        if node.kind.name in ("tokenize", kind):
            out, work = (world / f"{node.key}-{what}" for what in ("out", "work"))
            out.mkdir()
            work.mkdir()
            inputs = {role: artifacts[name] for role, name in node.inputs.items()}
            info = kind_of(node).run(Job(planned, node, inputs, context, out, work))
            artifacts[node.id] = Artifact(out, node.key, dict(info))
    # Two steps: of the student and its teacher in `general`; `pretrain` also evaluates the held-out text.
    assert len(masks) == {"pretrain": 3, "masked_lm": 2, "general": 4}[kind]
    assert all(mask.ndim == 4 and not mask.all() and mask.any(-1).all() for mask in masks)


@pytest.mark.parametrize("kind", RECIPES)
def test_what_is_not_written_is_in_no_key(world: Path, kind: str):
    def key(*overrides: str) -> str:
        return next(node.key for node in plan(world, kind, *overrides).nodes if node.kind.name == kind)

    assert key() == key(f"{kind}.attention=sequence")
    assert key(f"{kind}.attention=document") != key(f"{kind}.attention=sequence")


@pytest.mark.parametrize("spec", [Pretrain, MaskedLm, General])
def test_the_default_is_not_dumped(spec: Any):
    assert "attention" not in spec().model_dump(mode="json")
    assert spec(attention="document").model_dump(mode="json")["attention"] == "document"
