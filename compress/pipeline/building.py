"""Stages of a plan -> their artefacts, taken from the store or built now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import provenance
from ..fields import Spec
from ..store import Artifact, Store
from .distributed import run_job
from .plan import Context, Job, Node, Plan
from .stages.export import note_amplified_rounding
from .stages.learning_check import recorded_guess, warn_if_nothing_learnt
from .training.text import text_of

_NOTICES = "notices"  # in a manifest: the notices of the stage


def build_nodes(
    plan: Plan, nodes: Sequence[Node[Spec]], context: Context, cache: Store
) -> tuple[dict[str, Artifact], dict[str, bool]]:
    """Return node -> its artefact, and node -> whether it was in the store before this run. `nodes` come after those that they need."""
    artifacts: dict[str, Artifact] = {}
    cached: dict[str, bool] = {}
    for node in nodes:
        inputs = {role: artifacts[name] for role, name in node.inputs.items()}
        artifact = cache.find(node.key)
        if node.key not in context.seen:
            context.seen[node.key] = artifact is not None
            context.listener.stage(node.label, artifact is not None)
        cached[node.id] = context.seen[node.key]
        artifacts[node.id] = artifact or _build_artifact(plan, node, inputs, context, cache)
        for line in artifacts[node.id].describe.get(_NOTICES, ()):  # whichever run or process built it
            context.notice(line)
        if node.id not in plan.candidates:  # a candidate that learnt nothing is not chosen
            warn_if_nothing_learnt(plan, node, artifacts[node.id], context)
        note_amplified_rounding(node, artifacts[node.id], context)
    return artifacts, cached


def check_texts(plan: Plan, context: Context, cache: Store) -> None:
    """Check before any training that every stage yet to run has enough text; this costs one tokenization of the text."""
    texts: dict[str, Artifact] = {}
    for node in plan.nodes:
        name = node.inputs.get("text")
        if name is None or cache.has(node.key):
            continue
        if name not in texts:
            text = next(other for other in plan.nodes if other.id == name)
            texts[name] = cache.find(text.key) or build_nodes(plan, (text,), context, cache)[0][name]
        text_of(plan, node, texts[name])  # raises where there is too little


def _build_artifact(
    plan: Plan, node: Node[Spec], inputs: dict[str, Artifact], context: Context, cache: Store
) -> Artifact:
    describe = provenance.manifest_fields(node.kind.name, f"{node.label} on {plan.task.spec.name}")

    def make(out: Path, work: Path) -> dict[str, Any]:
        _check_sources(plan, node)
        before = len(context.notices)
        info = run_job(Job(plan, node, inputs, context, out, work))
        describe.update(recorded_guess(node, info, context))
        if notices := context.notices[before:]:
            describe[_NOTICES] = notices
        return info

    return cache.build(node.key, make, describe=describe)


def _check_sources(plan: Plan, node: Node[Spec]) -> None:
    """Raise `CompressError` if a checkpoint that the node reads changed since the plan was made: other stages may have run in between."""
    for source in (*plan.teachers.values(), plan.pretrained):
        if source is not None and source.identity in node.outside.values():
            source.check_unchanged()
