"""What stages share that make a new model of the current one: prune, vocabulary, relu and quantize_aware."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from ...fields import Spec
from ...models.dimensions import Dimensions, dimensions, read_config
from ...spec.stage import StageSpec
from .plan import Draft, Kind, Node, Plan

S = TypeVar("S", bound=Spec)


def add_changed(
    draft: Draft,
    kind: Kind[S],
    suffix: str,
    spec: S,
    described: dict[str, Any],
    *,
    stage: str,
    outside: dict[str, str],
    own: str | None = None,
) -> None:
    """Add a node that changes the current model, `suffix` behind its name: the student in place of the last one; of a teacher a model
    of its own beside it, for the teacher is the baseline, of the node's name or `own`."""
    before = draft.current
    name, inputs = f"{before}-{suffix}", {"model": draft.latest[before]}
    model = before if before != "teacher" else own or name
    name = draft.add(kind, name, model, spec, described, inputs=inputs, outside=outside, stage=stage)
    draft.sizes[model] = draft.sizes[before]
    draft.latest[model], draft.current = name, model


def activation_of(nodes: Iterable[Node[Spec]], model: str) -> str | None:
    """Of the feed-forward layers, where a stage of the run changes that of `model`."""
    specs = [node.spec for node in nodes if node.model == model]
    return next((spec.activation for spec in reversed(specs) if isinstance(spec, StageSpec) and spec.activation), None)


def checkpoint_sizes(plan: Plan, model: str, folder: Path) -> Dimensions:
    """Of `model` as the checkpoint in `folder` has it: those that a run chooses are known once it is made."""
    config, classes = read_config(folder), plan.sizes[model].classes
    return dimensions(config, classes=classes, kind=plan.task.spec.kind, folder=folder)
