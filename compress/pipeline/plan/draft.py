"""A plan in the making: stages add nodes to it, and it gives them their keys."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ... import store
from ...errors import CompressError
from ...fields import Spec
from ...machine import versions
from .node import KindFacts, Node
from .parts import RunParts
from .plan import Plan
from .teachers import TeacherSource

S = TypeVar("S", bound=Spec)


@dataclass(frozen=True, kw_only=True)
class Draft(RunParts):
    """The state of planning. `refit`: fine-tune a teacher that has a head already. `latest`: model -> node that made its last checkpoint;
    the next stage takes the last of these models."""

    refit: bool
    nodes: list[Node[Spec]] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def current(self) -> str:
        """The model that the next stage takes."""
        return next(reversed(self.latest), "teacher")

    def advance(self, model: str, node: str) -> None:
        """Make the checkpoint of `node` the last one of `model`, which the next stage takes."""
        self.latest.pop(model, None)
        self.latest[model] = node

    def adopts(self, teacher: TeacherSource) -> bool:
        """Whether that teacher is used as it is: fine-tuned already, or for a task whose labels train none."""
        return not self.learns_labels or (teacher.is_fine_tuned(self.task.spec.kind) and not self.refit)

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
        parts = {each.name: getattr(self, each.name) for each in fields(RunParts)}
        return Plan(**parts, nodes=tuple(self.nodes), notes=tuple(self.notes))
