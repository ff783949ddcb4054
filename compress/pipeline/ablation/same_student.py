"""When two plans of the same task, teacher and text train the same student."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...fields import Spec
from ...models.heads import HEADS
from ...spec.stages import Distill
from ..plan import Node, Plan


def trained_student(plan: Plan) -> list[Any]:
    """What decides the student that a plan ends in; equal where the same one is trained, whatever the recipe calls it.

    Mostly the key of the last stage. For some kinds of tasks two losses are the same.
    """
    equal = HEADS[plan.task.spec.kind].equal
    if not equal:
        return [plan.nodes[-1].key]
    student = None if plan.student is None else plan.student.model_dump(mode="json", exclude={"title"})
    stages = (node for node in plan.nodes if not node.kind.onnx)
    return [
        student,
        *(_distilled(node, node.spec, equal) if isinstance(node.spec, Distill) else node.key for node in stages),
    ]


def _distilled(node: Node[Spec], distill: Distill, equal: Mapping[str, str]) -> list[Any]:
    spec = distill.model_dump(mode="json", exclude={"losses", "per_task"})
    losses = [
        {"name": equal[loss.name], "weight": loss.weight} if loss.name in equal else loss.model_dump()
        for loss in distill.losses
    ]
    return [node.id, node.seed, node.inputs, spec, losses]
