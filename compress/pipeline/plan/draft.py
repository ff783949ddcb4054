"""A plan in the making: stages add nodes to it, and it gives them their keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from ... import store
from ...errors import CompressError
from ...fields import Spec
from ...machine import versions
from ...models.cards import StudentCard
from ...models.dimensions import Dimensions
from ...spec.kinds import KINDS
from ...spec.recipe import Recipe
from .node import KindFacts, Node
from .plan import Plan
from .sources import TaskSource, TextSource
from .teachers import TeacherSource, by_model

S = TypeVar("S", bound=Spec)


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
        kind: KindFacts[S],
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
