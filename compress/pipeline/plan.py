"""Recipe -> plan: the stages of a run with their keys, all known before anything is computed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import store
from ..catalog import load_student
from ..errors import CompressError
from ..models.dimensions import Dimensions, usable_positions
from ..models.students import student_dimensions
from ..spec.cards import StudentCard
from ..spec.recipe import Recipe
from ..tasks import BUILTIN_TASKS, check_room
from .context import TaskSource, TextSource
from .draft import KINDS, Draft, Node
from .planning import PLANNERS
from .teacher_planning import plan_teacher
from .teachers import TeacherSource

_MOST_SPECIAL = 8  # more special tokens than any tokenizer here adds to a text or a pair


@dataclass(frozen=True)
class Plan:
    """One run: a recipe on a task with a seed. Nodes are in the order in which they can run.

    `notes`: what the plan leaves out of the recipe, and why, a line each.
    """

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    student: StudentCard | None
    corpus: TextSource | None
    seed: int
    base_seed: int
    precision: str
    nodes: tuple[Node, ...]
    sizes: dict[str, Dimensions]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Readable, and different for any two runs that differ."""
        digest = store.key("run", 1, self._told, {node.id: node.key for node in self.nodes}, {})
        return f"{self.recipe.name}-{self.teacher.card.name}-{self.task.spec.name}-seed{self.seed}-{digest[:6]}"

    @property
    def _told(self) -> dict[str, Any]:
        """The recipe without what is only for its readers."""
        return self.recipe.model_dump(mode="json", exclude={"title", "description", "paper"})

    @property
    def models(self) -> tuple[str, ...]:
        """The ONNX models in the order they are made, e.g. teacher-fp32, student-fp32, student-int8."""
        return tuple(node.id for node in self.nodes if node.kind in ("export", "quantize"))

    def checkpoint(self, model: str) -> str:
        """Id of the node that makes the last checkpoint of `model`."""
        return [node.id for node in self.nodes if node.model == model and KINDS[node.kind].checkpoint][-1]

    def needed_for(self, name: str) -> tuple[Node, ...]:
        """The node `name` and all that its inputs are made of, in the order of the plan."""
        wanted, by_name = {name}, {node.id: node for node in self.nodes}
        for node in reversed(self.nodes):
            if node.id in wanted:
                wanted |= set(by_name[node.id].inputs.values())
        return tuple(node for node in self.nodes if node.id in wanted)


def make_plan(
    recipe: Recipe,
    task: TaskSource,
    teacher: TeacherSource,
    *,
    student: str | None,
    corpus: TextSource | None = None,
    seed: int,
    base_seed: int | None = None,
    precision: str,
    refit: bool,
) -> Plan:
    """Every stage with its key. `refit` fine-tunes a teacher that already has a head; `base_seed` is that of the
    stages that come before the task's distillation (default: `seed`).

    Raises `CompressError` when the parts do not fit each other.
    """
    classes = _classes(task, teacher)
    sizes = {"teacher": teacher.dimensions(classes)}
    card = _student_card(recipe, student, sizes["teacher"])
    if card is not None:
        sizes["student"] = student_dimensions(card, sizes["teacher"])
    base = seed if base_seed is None else base_seed
    draft = Draft(recipe, task, teacher, card, corpus, seed, base, precision, sizes)
    plan_teacher(draft, refit)
    for stage in recipe.stages:
        if getattr(stage.spec, "enabled", True) is not False:
            PLANNERS[stage.kind](draft, stage)
    nodes, notes = tuple(draft.nodes), (*draft.notes, *_misspelt_tasks(recipe, task.spec.name))
    plan = Plan(recipe, task, teacher, card, corpus, seed, base, precision, nodes, sizes, notes)
    _check_lengths(plan)
    return plan


def _misspelt_tasks(recipe: Recipe, task: str) -> Iterator[str]:
    """`per_task` may name tasks of other runs; one that is nearly this run's name, or a built-in one's, is a slip."""
    known = [*BUILTIN_TASKS, task]
    for stage in recipe.stages:
        for name in getattr(stage.spec, "per_task", {}):
            near = difflib.get_close_matches(name, known, n=2, cutoff=0.75)
            if name not in known and near:
                yield f"{stage.id}: per_task gives `{name}` settings of its own; did you mean {' or '.join(f'`{word}`' for word in near)}?"


def _check_lengths(plan: Plan) -> None:
    positions = usable_positions(plan.teacher.config)
    pair = len(plan.task.spec.text) == 2
    lengths = {f"task {plan.task.spec.name}": (plan.task.spec.max_length, pair)}
    for node in plan.nodes:
        if getattr(node.spec, "max_length", None):
            of_pairs = pair and not KINDS[node.kind].reads_text
            lengths[f"recipe {plan.recipe.name}, {node.stage}"] = node.spec.max_length, of_pairs
    for where, (length, of_pairs) in lengths.items():
        if length <= _MOST_SPECIAL:
            _check_room(plan.teacher, length, of_pairs, where)
        if length > positions:
            raise CompressError(
                f"{where}: max_length is {length} tokens and teacher {plan.teacher.card.name} has {positions} positions; "
                f"set max_length to at most {positions}"
            )


def _check_room(teacher: TeacherSource, length: int, of_pairs: bool, where: str) -> None:
    try:
        check_room(teacher.tokenizer, length, pair=of_pairs)
    except CompressError as error:
        raise CompressError(f"{where}: {error}") from None


def _classes(task: TaskSource, teacher: TeacherSource) -> int:
    if task.spec.kind == "regression":
        return 1
    return len(task.spec.labels) if task.spec.labels else len(task.data.labels)


def _student_card(recipe: Recipe, override: str | None, teacher: Dimensions) -> StudentCard | None:
    choice = recipe.student
    if choice is None:
        if override is not None:
            raise CompressError(f"recipe {recipe.name} makes no student, and --student names {override}; leave one out")
        return None
    if override is not None:
        return load_student(override)
    if isinstance(choice, str):
        return load_student(choice)
    if teacher.layers not in choice:
        depths = ", ".join(map(str, sorted(choice)))
        raise CompressError(
            f"recipe {recipe.name}: student: has cards for teachers of {depths} layers; this teacher has "
            f"{teacher.layers}; name one with --student"
        )
    return load_student(choice[teacher.layers])
