"""What stages share that make a model smaller: prune and vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from ...fields import Spec
from ...models.dimensions import Dimensions, dimensions, read_config
from .plan import Draft, Kind, Plan

S = TypeVar("S", bound=Spec)


def add_smaller(
    draft: Draft,
    kind: Kind[S],
    suffix: str,
    spec: S,
    described: dict[str, Any],
    *,
    stage: str,
    outside: dict[str, str],
) -> None:
    """Add a node that makes the current model smaller, `suffix` behind its name: the student in place of the last one; of a teacher a
    model of its own beside it, for the teacher is the baseline."""
    before = draft.current
    name, inputs = f"{before}-{suffix}", {"model": draft.latest[before]}
    model = before if draft.student is not None else name
    name = draft.add(kind, name, model, spec, described, inputs=inputs, outside=outside, stage=stage)
    draft.sizes[model] = draft.sizes[before]
    draft.latest[model], draft.current = name, model


def checkpoint_sizes(plan: Plan, model: str, folder: Path) -> Dimensions:
    """Of `model` as the checkpoint in `folder` has it: those that a run chooses are known once it is made."""
    config, classes = read_config(folder), plan.sizes[model].classes
    return dimensions(config, classes=classes, kind=plan.task.spec.kind, folder=folder)
