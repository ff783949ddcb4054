"""export: a checkpoint -> one ONNX file, fp32."""

from __future__ import annotations

from typing import Any

from ...spec.recipe import Stage
from ...spec.stages import Export
from ..plan import Draft, Job, Kind, Node, Plan


def plan(draft: Draft, stage: Stage) -> None:
    if draft.student is not None and "student" not in draft.latest:
        raise draft.fails(stage.id, "every distill stage is switched off, so there is no student; leave one on")
    add_export(draft, stage.spec)


def add_export(draft: Draft, spec: Export) -> None:
    """Of the current model."""
    model = draft.current
    described = {**spec.model_dump(mode="json"), "task": draft.task.spec.name}
    draft.add(EXPORT, f"{model}-fp32", model, spec, described, inputs={model: draft.latest[model]})


def check(plan: Plan, node: Node[Export]) -> None:
    """The fast graph has every part of the teacher's, or of the checkpoint that the student starts from."""
    from ...export.fast import check_parts

    if node.spec.graph == "fast":
        source = plan.source_of(node)
        role = "teacher" if source is plan.teacher else "student"
        check_parts(source.config, f"recipe {plan.recipe.name}, {role} {source.card.name}")


def run(job: Job[Export]) -> dict[str, Any]:
    """-> `model.onnx`."""
    from ...export import export_onnx

    (checkpoint,) = job.inputs.values()
    task = job.context.task.spec
    return export_onnx(
        checkpoint.path,
        job.out,
        graph=job.spec.graph,
        opset=job.spec.opset,
        task_name=task.name,
        labels=job.context.labels,
        kind=task.kind,
        pairs=len(task.text) == 2,
    )


EXPORT = Kind("export", 7, Export, run, plan, check, ("torch", "transformers", "onnx", "onnxscript"), onnx=True)
