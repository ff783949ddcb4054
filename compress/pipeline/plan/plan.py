"""What plans are made of: kinds of stages, the nodes of a run, and the plan, finished or being drafted.

They share a module because they refer to each other: a node has a kind, and a kind plans and runs nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from ... import store
from ...errors import CompressError
from ...fields import Spec
from ...machine import versions
from ...models.cards import StudentCard
from ...models.dimensions import Dimensions, usable_positions
from ...spec.kinds import KINDS
from ...spec.recipe import Recipe, Stage
from ...store import Artifact
from .context import Context
from .sources import TaskSource, TextSource
from .teachers import TeacherSource, by_model

TRAINING = ("torch", "transformers", "tokenizers")  # the libraries whose versions change the result of a training
S = TypeVar("S", bound=Spec)
S_co = TypeVar("S_co", bound=Spec, covariant=True)
Inputs = Mapping[str, Artifact]


@dataclass(frozen=True)
class Kind(Generic[S]):
    """Everything about one kind of stage.

    `plan` adds the stage that a recipe names to a draft; None for a kind that other stages add. `run` makes the artefact and returns its
    info as JSON values. `check` raises `CompressError`, before anything is computed, for what `run` could not do.

    Keys contain `version` (bump it when `run` makes something else than before) and the versions of `libraries`. `trains`: by optimizer
    steps. `checkpoint`: produces one, with the sizes of the model `trained_model`, or of the node's own. `onnx`: produces a model that is
    measured. `reads_text`: reads --corpus. `chooses`: takes the best of its inputs unchanged. `resized`, for a kind that makes its input
    `model` smaller: the new sizes, from the spec and the old ones, before it has run; None if the run chooses them. `smallest`, for the
    same kind: the smallest sizes that a run can reach.
    """

    name: str
    version: int
    spec: type[S]
    run: Callable[[Job[S]], Mapping[str, Any]]
    plan: Callable[[Draft, Stage], None] | None = None
    check: Callable[[Plan, Node[S]], None] | None = None
    libraries: tuple[str, ...] = ()
    trains: bool = False
    checkpoint: bool = False
    trained_model: str | None = None
    onnx: bool = False
    reads_text: bool = False
    chooses: bool = False
    resized: Callable[[S, Dimensions], Dimensions | None] | None = None
    smallest: Callable[[Plan, Node[S], Dimensions], Dimensions] | None = None


@dataclass(frozen=True)
class Node(Generic[S_co]):
    """One stage of a run.

    `id` is unique in the plan, e.g. `teacher`, `intermediate`, `student-int8`; `model` is what it makes or serves: `teacher`, `student`, or
    a teacher beside the first, e.g. `teacher-2`. `inputs`: the stage's name for an artefact -> the node that makes it. `stage`: its name in
    the recipe. `outside`: hashes of what no node makes.
    """

    kind: Kind[Any]
    id: str
    model: str
    key: str
    spec: S_co
    seed: int
    inputs: dict[str, str]
    stage: str
    outside: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The kind and the id; the id alone if it begins with the kind, e.g. `ensemble`, `ensemble-64`."""
        kind = self.kind.name
        return self.id if self.id == kind or self.id.startswith(f"{kind}-") else f"{kind} {self.id}"


@dataclass(frozen=True)
class Job(Generic[S_co]):
    """A node to run: its input artefacts by role, `out` for the artefact, `work` for files that survive an interruption."""

    plan: Plan
    node: Node[S_co]
    inputs: Inputs
    context: Context
    out: Path
    work: Path

    @property
    def spec(self) -> S_co:
        return self.node.spec


@dataclass(frozen=True)
class Plan:
    """One run: a recipe on a task with a seed. Nodes are in the order in which they can run.

    `notes`: what the plan leaves out of the recipe, and why, a line each. `pretrained`: the checkpoint that the student starts from, if it
    has its own. `others`: the teachers besides the first, `teacher`. `requested_as`: the name or path of the recipe in
    the request; None if it was passed as an object.
    """

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    student: StudentCard | None
    corpus: TextSource | None
    seed: int
    base_seed: int
    precision: str
    nodes: tuple[Node[Spec], ...]
    sizes: dict[str, Dimensions]
    notes: tuple[str, ...] = ()
    pretrained: TeacherSource | None = None
    others: tuple[TeacherSource, ...] = ()
    requested_as: str | None = None

    @property
    def name(self) -> str:
        """A readable name, different for any two runs that differ."""
        digest = store.key("run", 1, self.recipe_document, {node.id: node.key for node in self.nodes}, {})
        teacher = self.teacher.card.name + (f"+{len(self.others)}" if self.others else "")
        return f"{self.recipe.name}-{teacher}-{self.task.spec.name}-seed{self.seed}-{digest[:6]}"

    @property
    def recipe_document(self) -> dict[str, Any]:
        """The recipe without the fields that are only for readers."""
        return self.recipe.model_dump(mode="json", exclude={"title", "description", "paper"})

    @property
    def teachers(self) -> dict[str, TeacherSource]:
        """Model name of each teacher in the plan -> its source."""
        return by_model(self.teacher, self.others)

    @property
    def models(self) -> tuple[str, ...]:
        """The ONNX models in the order they are made, e.g. teacher-fp32, student-fp32, student-int8."""
        return tuple(node.id for node in self.nodes if node.kind.onnx)

    @property
    def candidates(self) -> set[str]:
        """Ids of the nodes from which another node takes the best, except those of teachers."""
        return {
            name for node in self.nodes if node.kind.chooses for name in node.inputs.values()
        } - self.teachers.keys()

    def checkpoint(self, model: str) -> str:
        """Id of the node that makes the last checkpoint of `model`."""
        return [node.id for node in self.nodes if node.model == model and node.kind.checkpoint][-1]

    def sizes_of(self, node: Node[Spec]) -> Dimensions:
        """Sizes of the checkpoint that `node` makes."""
        return self.sizes[node.kind.trained_model or node.model]

    def source_of(self, node: Node[Spec]) -> TeacherSource:
        """The checkpoint that gives the model of `node` its tokenizer, and its config except for sizes."""
        return self.source(node.kind.trained_model or node.model)

    def source(self, model: str) -> TeacherSource:
        """As `source_of`, for a teacher or `student`."""
        if model == "student" and self.pretrained is not None:
            return self.pretrained
        return self.teachers.get(model, self.teacher)

    def positions_of(self, node: Node[Spec]) -> int:
        """The longest text in tokens that the model of `node`, and the teacher, can read."""
        return min(usable_positions(source.config) for source in (self.teacher, self.source_of(node)))

    @property
    def shares_tokenizer(self) -> bool:
        """Whether teacher and student tokenize texts alike."""
        return self.teacher.shares_tokenizer(self.pretrained)

    def needed_for(self, name: str) -> tuple[Node[Spec], ...]:
        """The node `name` and all that it depends on, in the order of the plan."""
        wanted, by_name = {name}, {node.id: node for node in self.nodes}
        for node in reversed(self.nodes):
            if node.id in wanted:
                wanted |= set(by_name[node.id].inputs.values())
        return tuple(node for node in self.nodes if node.id in wanted)


@dataclass
class Draft:
    """The state of planning. `refit`: fine-tune a teacher that has a head already. `latest`: model -> node that made its last checkpoint;
    `current`: the model that the next stage takes."""

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    student: StudentCard | None
    corpus: TextSource | None
    seed: int
    base_seed: int
    precision: str
    refit: bool
    sizes: dict[str, Dimensions]
    nodes: list[Node[Spec]] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    current: str = "teacher"
    pretrained: TeacherSource | None = None
    others: tuple[TeacherSource, ...] = ()

    def adopts(self, teacher: TeacherSource) -> bool:
        """Whether that teacher is used as it is: fine-tuned already, or for a task whose labels train none."""
        learnt = KINDS[self.task.spec.kind].learnt
        return not learnt or (teacher.is_fine_tuned(self.task.spec.kind) and not self.refit)

    @property
    def teachers(self) -> dict[str, TeacherSource]:
        """Model name of each teacher in the plan -> its source."""
        return by_model(self.teacher, self.others)

    @property
    def shares_tokenizer(self) -> bool:
        """Whether teacher and student tokenize texts alike."""
        return self.teacher.shares_tokenizer(self.pretrained)

    def add(
        self,
        kind: Kind[S],
        name: str,
        model: str,
        spec: S,
        described: dict[str, Any],
        *,
        inputs: dict[str, str] | None = None,
        outside: dict[str, str] | None = None,
        seed: int | None = None,
        stage: str | None = None,
    ) -> str:
        """Append a node, unless one with its key is there; return the id of the node with that key. `described`: what its key contains
        besides inputs and libraries; `outside`: hashes of what no node makes."""
        inputs, stage = inputs or {}, stage or kind.name
        libraries = {library: version for library, version in versions().items() if library in kind.libraries}
        keys = {role: self.key_of(node) for role, node in inputs.items()} | (outside or {})
        key = store.key(kind.name, kind.version, described, keys, libraries)
        if any(node.id == name and node.key != key for node in self.nodes):
            raise self.fails(stage, f"another stage makes `{name}` already; give it another `name`")
        node_id = next((node.id for node in self.nodes if node.key == key), None)
        if node_id is None:
            seed = self.seed if seed is None else seed
            self.nodes.append(Node(kind, name, model, key, spec, seed, inputs, stage, outside or {}))
        return node_id or name

    def key_of(self, name: str) -> str:
        for node in self.nodes:
            if node.id == name:
                return node.key
        raise CompressError(f"recipe {self.recipe.name}: nothing makes {name}, which a later stage needs")

    def has(self, name: str) -> bool:
        return any(node.id == name for node in self.nodes)

    def check_student(self, stage: str) -> None:
        """Raise `CompressError` if the recipe has a student and no stage that makes it."""
        if self.student is not None and self.current == "teacher":
            raise self.fails(stage, "every distill stage is switched off, so there is no student; leave one on")

    def fails(self, stage: str, problem: str) -> CompressError:
        return CompressError(f"recipe {self.recipe.name}, stage {stage}: {problem}")

    def plan(self) -> Plan:
        """Return the finished plan."""
        return Plan(
            self.recipe,
            self.task,
            self.teacher,
            self.student,
            self.corpus,
            self.seed,
            self.base_seed,
            self.precision,
            tuple(self.nodes),
            self.sizes,
            tuple(self.notes),
            self.pretrained,
            self.others,
        )
