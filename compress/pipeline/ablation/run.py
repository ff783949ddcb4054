"""Run the variants of a recipe: all are planned first, and each is trained as long as the full recipe."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import CompressError
from ...fields import Spec
from ...files.paths import display_path
from ...models.heads import HEADS
from ...results import Result
from ...spec.stages import Distill
from ..estimate import epoch_steps
from ..plan import Listener, Node, Plan
from ..preflight import preflight
from ..request import Request, as_tuple, display_override, own_words
from ..run import plan_all, run_all
from .rows import FULL, WITHOUT_COPIES, Row


def run_rows(rows: Sequence[Row], request: Request, listener: Listener | None = None) -> dict[str, list[Result]]:
    """Run the rows one after the other on the tasks and seeds of `request`; return label -> results.

    All are planned and checked before the first is run. A row that changes nothing with this teacher is left out, for example one without a
    stage that the plan leaves out anyway. Raises what `run_all` raises.
    """
    listener = listener or Listener()
    full = plan_all(_request(request, rows[0]))
    rows = [rows[0], *(with_equal_training(row, full) for row in rows[1:])]
    plans = {row.label: plan_all(_request(request, row)) for row in rows}
    preflight([plan for planned in plans.values() for plan in planned], request.root)
    kept = [row for row in rows if row.label == FULL or _changes_something(row.label, plans, listener)]
    if len(kept) < 2:
        raise CompressError("an ablation needs a row besides `full`, and none of these changes anything here")
    results = {}
    for number, row in enumerate(kept, 1):
        listener.notice(f"row {number} of {len(kept)}: {row.label}")
        results[row.label] = run_all(_request(request, row), listener)
    return results


def command_line(name: str, request: Request, labels: Sequence[str]) -> str:
    """Return the `compress ablate` command that makes these rows again; paths are written by `display_path`."""
    words = ["compress", "ablate", display_path(name), *(own_words(request.own, request.corpus) if request.own else ())]
    first, count = request.seeds[0], len(request.seeds)
    options: list[tuple[str, Sequence[Any]]] = [
        ("--task", request.tasks),
        ("--teacher", as_tuple(request.teacher)),
        ("--student", _as_list(request.student)),
        ("--seeds", [count] if count > 1 else []),
        ("--seed", [first] if first else []),
        ("--base-seed", _as_list(request.base_seed)),
        ("--data-dir", _as_list(request.data_dir)),
        ("--tuning", _as_list(request.tuning)),
        ("--corpus", request.corpus),
        ("--precision", _as_list(request.precision)),
        ("--set", [display_override(text) for text in request.overrides]),
        ("--rows", labels),
    ]
    for flag, values in options:
        for value in values:
            words += [flag, display_path(str(value))]
    return shlex.join([*words, *(["--refit"] if request.refit else [])])


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else [value]


def _request(request: Request, row: Row) -> Request:
    """Return the request for one row. The row's recipe has the overrides applied already; an ablation measures no latency."""
    student = row.student or request.student
    return replace(request, recipes=(row.recipe,), student=student, overrides=(), bench=None)


def _changes_something(label: str, plans: dict[str, list[Plan]], listener: Listener) -> bool:
    """Whether a row trains another student than the full recipe on any task; a notice names the tasks where it does not."""
    pairs = list(zip(plans[label], plans[FULL], strict=True))
    same = [
        row_plan.task.spec.name
        for row_plan, full_plan in pairs
        if trained_student(row_plan) == trained_student(full_plan)
    ]
    if len(same) == len(pairs):
        listener.notice(f"{label}: changes nothing here, and is left out")
    elif same:
        listener.notice(f"{label}: changes nothing on {', '.join(dict.fromkeys(same))}")
    return len(same) < len(pairs)


def with_equal_training(row: Row, full: Sequence[Plan]) -> Row:
    """Return the row with the training of what it leaves out given to what remains, for each task, as planned in `full`.

    If a distill stage is left out, its heir gets its passes, as many as its `max_steps` allows; without augmented copies, the distill
    stages pass over the fewer examples more often. Evaluations are as frequent as before. Reads the data where steps are limited.
    """
    longer = {plan.task.spec.name: _longer(row, plan) for plan in full}
    stages = tuple(
        stage.model_copy(update={stage.kind: _with_lengths(stage.spec, stage.id, longer)})
        for stage in row.recipe.stages
    )
    return replace(row, recipe=row.recipe.model_copy(update={"stages": stages}))


def _longer(row: Row, plan: Plan) -> dict[str, dict[str, Any]]:
    """Return stage -> the fields of its training length that change."""
    nodes = {node.stage: node for node in plan.nodes}
    specs: dict[str, Any] = {stage: node.spec for stage, node in nodes.items()}
    if row.moved is not None:
        gone, heir = row.moved
        epochs, steps = specs[gone].epochs + specs[heir].epochs, None
        if specs[gone].max_steps or specs[heir].max_steps:
            passes = sum(_count_epochs(plan, nodes[stage]) for stage in row.moved)
            steps = max(1, round(passes * epoch_steps(plan, nodes[heir])))
        return {heir: {"epochs": epochs, "max_steps": steps}}
    if row.label == WITHOUT_COPIES and "augment" in specs:
        times = 1 + specs["augment"].copies
        trained = {name: spec for name, spec in specs.items() if isinstance(spec, Distill)}
        return {
            name: {"epochs": spec.epochs * times, "evaluate_every": spec.evaluate_every * times}
            for name, spec in trained.items()
        }
    return {}


def _count_epochs(plan: Plan, node: Node[Any]) -> float:
    """Passes over its examples that the stage completes."""
    spec = node.spec
    return min(spec.epochs, spec.max_steps / epoch_steps(plan, node)) if spec.max_steps else spec.epochs


def _with_lengths(spec: Any, stage: str, longer: dict[str, dict[str, dict[str, Any]]]) -> Any:
    lengths = {task: fields[stage] for task, fields in longer.items() if stage in fields}
    if not lengths:
        return spec
    return spec.model_copy(
        update={
            "per_task": spec.per_task | {task: spec.per_task.get(task, {}) | fields for task, fields in lengths.items()}
        }
    )


def trained_student(plan: Plan) -> list[Any]:
    """Return what determines the student that a plan ends in: equal for two plans that train the same student, whatever their recipes are
    called.

    This is mostly the key of the last stage; for some kinds of tasks two losses are equivalent.
    """
    forms = HEADS[plan.task.spec.kind].losses
    equal = {name: form.same_as for name, form in forms.items() if form.same_as is not None}
    if not equal:
        return [plan.nodes[-1].key]
    student = None if plan.student is None else plan.student.model_dump(mode="json", exclude={"title"})
    stages = (node for node in plan.nodes if not node.kind.onnx)
    return [
        student,
        *(_distill_identity(node, node.spec, equal) if isinstance(node.spec, Distill) else node.key for node in stages),
    ]


def _distill_identity(node: Node[Spec], distill: Distill, equal: Mapping[str, str]) -> list[Any]:
    spec = distill.model_dump(mode="json", exclude={"losses", "per_task"})
    losses = [
        {"name": equal[loss.name], "weight": loss.weight} if loss.name in equal else loss.model_dump()
        for loss in distill.losses
    ]
    return [node.id, node.seed, node.inputs, spec, losses]
