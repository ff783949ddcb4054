"""A finished plan: one run, with every stage and its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ... import store
from ...fields import Spec
from ...models.dimensions import Dimensions, usable_positions
from .node import Node
from .parts import RunParts
from .teachers import TeacherSource


@dataclass(frozen=True, kw_only=True)
class Plan(RunParts):
    """One run: a recipe on a task with a seed. Nodes are in the order in which they can run.

    `notes`: what the plan leaves out of the recipe, and why, a line each. `requested_as`: the name or path of the recipe in the request;
    None if it was passed as an object.
    """

    nodes: tuple[Node[Spec], ...]
    notes: tuple[str, ...] = ()
    requested_as: str | None = None

    @property
    def name(self) -> str:
        """A readable name, different for any two runs that differ."""
        digest = store.key("run", 1, self.recipe_document, self.keys, {})
        teacher = self.teacher.card.name + (f"+{len(self.others)}" if self.others else "")
        return f"{self.recipe.name}-{teacher}-{self.task.spec.name}-seed{self.seed}-{digest[:6]}"

    @property
    def recipe_document(self) -> dict[str, Any]:
        """The recipe without the fields that are only for readers."""
        return self.recipe.model_dump(mode="json", exclude={"title", "description", "paper"})

    @property
    def keys(self) -> dict[str, str]:
        """Id of each node -> its key."""
        return {node.id: node.key for node in self.nodes}

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
        """As `source`, for the model of `node`."""
        return self.source(node.kind.trained_model or node.model)

    def positions_of(self, node: Node[Spec]) -> int:
        """The longest text in tokens that the model of `node`, and the teacher, can read."""
        return min(usable_positions(source.config) for source in (self.teacher, self.source_of(node)))

    def needed_for(self, name: str) -> tuple[Node[Spec], ...]:
        """The node `name` and all that it depends on, in the order of the plan."""
        wanted, by_name = {name}, {node.id: node for node in self.nodes}
        for node in reversed(self.nodes):
            if node.id in wanted:
                wanted |= set(by_name[node.id].inputs.values())
        return tuple(node for node in self.nodes if node.id in wanted)
