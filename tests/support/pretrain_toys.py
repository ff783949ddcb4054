"""Plans of teachers pre-trained on plain text, and the stages that make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.plan import Context, Job, Listener
from compress.pipeline.stages.registry import kind_of
from compress.store import Artifact

CARD = """
name: own
title: own
licence: Apache-2.0
random: {{layers: 2, hidden: 16, heads: 2, intermediate: 32, max_positions: 32, tokenizer: "{0}"}}
finetune: {{max_steps: 2, batch_size: 4}}
"""
GROWN = """
name: own
title: own
licence: Apache-2.0
random: {{layers: 2, hidden: {1}, heads: {2}, intermediate: 64, max_positions: 32, grow_from: "{0}"}}
finetune: {{max_steps: 2, batch_size: 4}}
"""
QUICK = ("pretrain.batch_size=4", "pretrain.max_steps=3", "pretrain.max_length=16", "pretrain.held_out=0.1")


def plan(world: Path, *overrides: str, recipe: str = "bert-pretrain", **changes: Any) -> Plan:
    request: dict[str, Any] = {"teacher": str(world / "own.yaml"), "corpus": (str(world / "text.txt"),)}
    quick = QUICK if recipe == "bert-pretrain" else ()
    return plan_all(
        Request((recipe,), (str(world / "task.yaml"),), overrides=(*quick, *overrides), **(request | changes))
    )[0]


def run_stages(world: Path, planned: Plan, *kinds: str, notices: list[str] | None = None) -> dict[str, Artifact]:
    """Run the plan's stages of these kinds in order and return their artefacts; their notices are appended to `notices`."""
    artefacts: dict[str, Artifact] = {}
    context = Context(planned.task, "fp32", 1, Listener(), notices=[] if notices is None else notices)
    for node in planned.nodes:
        if node.kind.name in kinds:
            out, work = (world / f"{node.key}-{what}" for what in ("out", "work"))
            out.mkdir()
            work.mkdir()
            inputs = {role: artefacts[name] for role, name in node.inputs.items()}
            artefacts[node.id] = Artifact(
                out, node.key, dict(kind_of(node).run(Job(planned, node, inputs, context, out, work)))
            )
    return artefacts
