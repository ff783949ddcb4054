"""What results record of a recipe and its stages: every setting as it was resolved."""

from __future__ import annotations

from typing import Any

from ...fields import Spec
from ...spec.recipe import Stage
from ...spec.stage import StageSpec
from ..plan import Node, Plan


def resolved_recipe(plan: Plan) -> dict[str, Any]:
    """Return the recipe with everything resolved: the cards' settings, where all teachers share them, the teacher, student and
    precision."""
    specs = {node.stage: node.spec for node in plan.nodes}
    specs |= {stage.id: stage.spec for stage in plan.recipe.stages if stage.kind == "export"}  # each model has its own
    planned_stages = [stage for stage in plan.recipe.stages if stage.id in specs or stage.kind == "finetune"]
    stages = [
        {stage.kind: _name_field(stage) | _shared_settings(plan, stage.id, specs.get(stage.id) or stage.spec)}
        for stage in planned_stages
    ]
    document = plan.recipe.model_dump(mode="json", exclude_none=True)
    student = {"student": plan.student.name} if plan.student else {}
    names = [teacher.card.name for teacher in plan.teachers.values()]
    teacher = names if plan.others else names[0]
    return {**document, "teacher": teacher, **student, "precision": plan.precision, "stages": stages}


def student_card(plan: Plan) -> dict[str, Any] | None:
    """Return the fields of the student's card that decide its model; its own checkpoint is the result's `student_origin`."""
    return plan.student.model_dump(mode="json", exclude={"name", "title", "checkpoint"}) if plan.student else None


def _name_field(stage: Stage) -> dict[str, Any]:
    return {"name": stage.id} if stage.id != stage.kind else {}


def _shared_settings(plan: Plan, stage: str, spec: Spec) -> dict[str, Any]:
    """Return the settings of a stage, without those that differ between the teachers that it trains; their cards record these."""
    trained = [_written_settings(node.spec) for node in plan.nodes if node.stage == stage and node.id in plan.teachers]
    return {
        name: value for name, value in _written_settings(spec).items() if all(one.get(name) == value for one in trained)
    }


def _written_settings(spec: Spec) -> dict[str, Any]:
    return spec.model_dump(mode="json", exclude={"per_task"}, exclude_none=True)


def stage_settings(node: Node[Spec]) -> dict[str, Any]:
    """Return the recipe's settings of the stage, if the recipe names it, and hashes of the files and checkpoints that it names, whose paths
    a result omits."""
    if not isinstance(node.spec, StageSpec):
        return {}
    files = node.spec.files.items()
    hashes = {field: node.outside[role] for field, role in files if getattr(node.spec, field) and role in node.outside}
    return {"spec": _written_settings(node.spec), **({"hashes": hashes} if hashes else {})}
