"""Helpers shared by the stages that make a new model from the current one: prune, vocabulary, relu and quantize_aware."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from ...fields import Spec
from ...models.dimensions import Dimensions, dimensions, read_config
from ...spec.stage import StageSpec
from .draft import Draft
from .node import KindFacts, Node
from .plan import Plan

S = TypeVar("S", bound=Spec)


def add_changed(
    draft: Draft,
    kind: KindFacts[S],
    suffix: str,
    spec: S,
    described: dict[str, Any],
    *,
    stage: str,
    outside: dict[str, str],
    own: str | None = None,
) -> None:
    """Add a node that changes the current model, with `suffix` appended to its name. A changed student replaces the last one. A changed
    teacher becomes another model, named after the node or `own`, because the teacher is the baseline."""
    before = draft.current
    name, inputs = f"{before}-{suffix}", {"model": draft.latest[before]}
    model = before if before != "teacher" else own or name
    name = draft.add(kind, name, model, spec, described, inputs=inputs, outside=outside, stage=stage)
    draft.sizes[model] = draft.sizes[before]
    draft.advance(model, name)


def activation_of(nodes: Iterable[Node[Spec]], model: str) -> str | None:
    """Return the activation function of the feed-forward layers, if a stage of the run changes that of `model`; else None."""
    specs = [node.spec for node in nodes if node.model == model]
    return next((spec.activation for spec in reversed(specs) if isinstance(spec, StageSpec) and spec.activation), None)


def checkpoint_sizes(plan: Plan, model: str, folder: Path) -> Dimensions:
    """Return the sizes of `model` in the checkpoint in `folder`: those that a run chooses are known only once it is made."""
    config, classes = read_config(folder), plan.sizes[model].classes
    return dimensions(config, classes=classes, kind=plan.task.spec.kind, folder=folder)
