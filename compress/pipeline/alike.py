"""When two plans of the same task, teacher and text train the same student."""

from __future__ import annotations

from typing import Any

from .draft import Node
from .plan import Plan


def trained(plan: Plan) -> list[Any]:
    """What decides the student that a plan ends in; equal where the same one is trained, whatever the recipe calls it.

    Mostly the key of the last stage. For regression the cross-entropy with soft targets is the squared error to the
    gold score, just as `hard_label` is.
    """
    if plan.task.spec.kind != "regression":
        return [plan.nodes[-1].key]
    student = None if plan.student is None else plan.student.model_dump(mode="json", exclude={"title"})
    stages = (node for node in plan.nodes if node.kind != "export")
    return [student, *(_distilled(node) if node.kind == "distill" else node.key for node in stages)]


def _distilled(node: Node) -> list[Any]:
    spec = node.spec.model_dump(mode="json", exclude={"losses", "per_task"})
    losses = [
        {"name": "hard_label", "weight": loss.weight} if loss.name == "soft_cross_entropy" else loss.model_dump()
        for loss in node.spec.losses
    ]
    return [node.id, node.seed, node.inputs, spec, losses]
