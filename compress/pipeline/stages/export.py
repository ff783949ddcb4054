"""export: a checkpoint -> one ONNX file, fp32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...models.fast_graph import check_fast_graph, fast_graph_is_for, fast_graph_problem
from ...spec.recipe import Recipe, Stage
from ...spec.stages import Export
from ...store import Artifact
from ..plan import Context, Draft, Job, Kind, Node, Plan
from ..plan.changed import activation_of


def plan(draft: Draft, stage: Stage) -> None:
    draft.check_student(stage.id)
    add_export(draft, stage.spec)


def add_export(draft: Draft, spec: Export) -> None:
    """Add the export of the current model."""
    model = draft.current
    if spec.graph == "auto":
        problem = no_fast_graph(draft, model)
        spec = spec.model_copy(update={"graph": "fast" if problem is None else "plain"})
        note = (
            f"{model}: its ONNX graph is the plain one, from torch's exporter, with the same answers: "
            f"{fast_graph_is_for()}, and {problem}. It is slower than a fast one, because it computes the last "
            "layer for every token and has no unpadded form"
        )
        if problem is not None and note not in draft.notes:  # a teacher that is the last model is planned twice
            draft.notes.append(note)
    described = {**spec.model_dump(mode="json"), "task": draft.task.spec.name}
    draft.add(EXPORT, f"{model}-fp32", model, spec, described, inputs={model: draft.latest[model]})


def no_fast_graph(draft: Draft, model: str) -> str | None:
    """Return why the checkpoint of `model` has no fast graph, None if it has one."""
    source = draft.source(model)
    own = activation_of(draft.nodes, model)
    return fast_graph_problem(source.config, family=draft.sizes[model].architecture, activation=own)


def with_graph(recipe: Recipe, nodes: Sequence[Node[Any]]) -> Recipe:
    """Return the recipe with `graph: auto` replaced by what all exporting `nodes` use; unchanged if they differ."""
    graphs = {node.spec.graph for node in nodes if node.kind is EXPORT}
    if len(graphs) > 1:
        return recipe
    (graph,) = graphs
    stages = tuple(
        stage.model_copy(update={"export": stage.spec.model_copy(update={"graph": graph})})
        if stage.kind == "export"
        else stage
        for stage in recipe.stages
    )
    return recipe.model_copy(update={"stages": stages})


def check(plan: Plan, node: Node[Export]) -> None:
    """Check that the fast graph supports every part of the teacher, or of the checkpoint that the student starts from."""
    if node.spec.graph == "fast":
        source = plan.source_of(node)
        role = "teacher" if source is plan.teacher else "student"
        where = f"recipe {plan.recipe.name}, {role} {source.card.name}"
        own = activation_of(plan.nodes, node.model)
        check_fast_graph(source.config, where, family=plan.sizes_of(node).architecture, activation=own)


def run(job: Job[Export]) -> dict[str, Any]:
    """Write `model.onnx`."""
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
        pairs=task.pairs,
    )


def note_amplified_rounding(node: Node[Any], artifact: Artifact, context: Context) -> None:
    """Report amplified rounding, in every run that has the graph, whichever exported it."""
    for shape, moved in artifact.info.get("moved_by_rounding", {}).items():
        context.notice(
            f"{node.id}: this model amplifies rounding errors: fp32 may change its answers to {shape} random "
            f"tokens by up to {moved:.1e}; the graph's differ from float64's by no more than that"
        )


EXPORT = Kind(
    "export",
    7,
    Export,
    run=run,
    plan=plan,
    check=check,
    libraries=("torch", "transformers", "onnx", "onnxscript"),
    onnx=True,
)
