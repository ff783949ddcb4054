"""Recipe -> plan: the stages of a run with their keys, all known before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import store
from ..catalog import load_student
from ..errors import CompressError
from ..machine import versions
from ..models.dimensions import Dimensions
from ..models.students import student_dimensions
from ..spec.cards import StudentCard
from ..spec.recipe import Recipe, Stage
from ..spec.stages import Distill, Export, Finetune, Training
from .context import TaskSource
from .teachers import TeacherSource


@dataclass(frozen=True)
class Node:
    """One stage of a run. `model` names what it makes, e.g. `teacher`, `student-int8`."""

    kind: str
    model: str
    key: str
    spec: Any
    inputs: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.kind} {self.model}"


@dataclass(frozen=True)
class Plan:
    """One run: a recipe on a task with a seed. Nodes are in the order in which they can run."""

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    student: StudentCard | None
    seed: int
    precision: str
    nodes: tuple[Node, ...]
    sizes: dict[str, Dimensions]

    @property
    def name(self) -> str:
        """Readable, and different for any two runs that differ."""
        digest = store.key("run", 1, self._told, {node.model: node.key for node in self.nodes}, {})
        return f"{self.recipe.name}-{self.teacher.card.name}-{self.task.spec.name}-seed{self.seed}-{digest[:6]}"

    @property
    def _told(self) -> dict[str, Any]:
        """The recipe without what is only for its readers."""
        return self.recipe.model_dump(mode="json", exclude={"title", "description", "paper"})

    @property
    def models(self) -> tuple[str, ...]:
        """The ONNX models in the order they are made, e.g. teacher-fp32, student-fp32, student-int8."""
        return tuple(node.model for node in self.nodes if node.kind in ("export", "quantize"))


@dataclass
class _Draft:
    """A plan in the making: what exists so far, and which model is current."""

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    student: StudentCard | None
    seed: int
    precision: str
    sizes: dict[str, Dimensions]
    nodes: list[Node] = field(default_factory=list)
    current: str = ""

    def add(self, kind: str, model: str, spec: Any, described: dict[str, Any], inputs: dict[str, str]) -> None:
        libraries = {name: version for name, version in versions().items() if name in KINDS[kind].libraries}
        key = store.key(kind, KINDS[kind].version, described, inputs, libraries)
        if not any(node.key == key for node in self.nodes):
            self.nodes.append(Node(kind, model, key, spec, tuple(inputs)))

    def key_of(self, model: str) -> str:
        for node in self.nodes:
            if node.model == model:
                return node.key
        raise CompressError(f"recipe {self.recipe.name}: nothing makes {model}, which a later stage needs")


def make_plan(
    recipe: Recipe,
    task: TaskSource,
    teacher: TeacherSource,
    *,
    student: str | None,
    seed: int,
    precision: str,
    refit: bool,
) -> Plan:
    """Every stage with its key. `refit` fine-tunes a teacher that already has a head.

    Raises `CompressError` when the parts do not fit each other.
    """
    classes = _classes(task, teacher)
    sizes = {"teacher": teacher.dimensions(classes)}
    card = _student_card(recipe, student, sizes["teacher"])
    if card is not None:
        sizes["student"] = student_dimensions(card, sizes["teacher"])
    draft = _Draft(recipe, task, teacher, card, seed, precision, sizes)
    _plan_teacher(draft, refit)
    for stage in recipe.stages:
        KINDS[stage.kind].plan(draft, stage)
    return Plan(recipe, task, teacher, card, seed, precision, tuple(draft.nodes), sizes)


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


def _plan_teacher(draft: _Draft, refit: bool) -> None:
    """The teacher first: fine-tuned here, or taken as it is. Its fp32 ONNX is every run's baseline."""
    teacher = draft.teacher
    written = next((stage.spec for stage in draft.recipe.stages if stage.kind == "finetune"), None)
    inputs = {"teacher": teacher.identity, "data": draft.task.fingerprint}
    if teacher.fine_tuned and not refit:
        draft.add("adopt", "teacher", None, {}, inputs)
    elif written is None:
        raise CompressError(
            f"recipe {draft.recipe.name} has no finetune stage, and teacher {teacher.card.name} is not fine-tuned: "
            "add `- finetune` to the recipe's stages, or give a fine-tuned checkpoint with --teacher DIR"
        )
    else:
        training = training_for(draft, (teacher.card.finetune, written), Finetune)
        draft.add("finetune", "teacher", training, _described(draft, training), inputs)
    draft.current = "teacher"
    export = next(stage.spec for stage in draft.recipe.stages if stage.kind == "export")
    _add_export(draft, export)


def training_for(draft: _Draft, layers: tuple[Any, ...], model: type[Training]) -> Any:
    """Fields of `layers`, later over earlier, those of the task over the rest; the model's defaults below."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer.for_task(draft.task.spec.name)
    return model.model_validate({"max_length": draft.task.spec.max_length, **merged})


def _described(draft: _Draft, training: Training) -> dict[str, Any]:
    spec = training.model_dump(mode="json", exclude={"per_task"})
    if draft.student is not None and training.__class__ is Distill:
        spec["student"] = draft.student.model_dump(mode="json", exclude={"title"})
    return {**spec, "seed": draft.seed, "precision": draft.precision}


def _plan_finetune(draft: _Draft, stage: Stage) -> None:
    """Planned first, with the teacher."""


def _plan_distill(draft: _Draft, stage: Stage) -> None:
    card = draft.teacher.card
    training = training_for(draft, (card.finetune, card.distill, stage.spec), Distill)
    inputs = {"teacher": draft.key_of("teacher"), "data": draft.task.fingerprint}
    draft.add("distill", "student", training, _described(draft, training), inputs)
    draft.current = "student"


def _plan_export(draft: _Draft, stage: Stage) -> None:
    _add_export(draft, stage.spec)


def _add_export(draft: _Draft, spec: Export) -> None:
    model = draft.current
    described = {**spec.model_dump(mode="json"), "task": draft.task.spec.name}
    draft.add("export", f"{model}-fp32", spec, described, {model: draft.key_of(model)})


def _plan_quantize(draft: _Draft, stage: Stage) -> None:
    source = f"{draft.current}-fp32"
    inputs = {draft.current: draft.key_of(draft.current), source: draft.key_of(source)}
    draft.add("quantize", f"{draft.current}-int8", stage.spec, stage.spec.model_dump(mode="json"), inputs)


@dataclass(frozen=True)
class Kind:
    """What planning knows of a kind of stage. Bump `version` when its code makes something else than before;
    `libraries` are those whose version changes the outcome."""

    version: int
    libraries: tuple[str, ...]
    plan: Callable[[_Draft, Stage], None]


KINDS: dict[str, Kind] = {
    "finetune": Kind(1, ("torch", "transformers", "tokenizers"), _plan_finetune),
    "adopt": Kind(1, ("transformers",), _plan_finetune),
    "distill": Kind(1, ("torch", "transformers", "tokenizers"), _plan_distill),
    "export": Kind(1, ("torch", "transformers", "onnx", "onnxscript"), _plan_export),
    "quantize": Kind(1, ("onnx", "onnxruntime"), _plan_quantize),
}
