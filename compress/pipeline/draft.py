"""A plan in the making: the nodes so far, with their keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import store
from ..errors import CompressError
from ..machine import versions
from ..models.dimensions import Dimensions
from ..spec.cards import StudentCard
from ..spec.recipe import Recipe
from .context import TaskSource, TextSource
from .teachers import TeacherSource


@dataclass(frozen=True)
class Node:
    """One stage of a run.

    `id` is its own in the plan, e.g. `teacher`, `intermediate`, `student-int8`; `model` is what it makes or serves:
    `teacher` or `student`. `inputs`: what the stage calls an artefact -> the node that makes it. `stage`: what the
    recipe calls it. `outside`: hashes of what no node makes.
    """

    kind: str
    id: str
    model: str
    key: str
    spec: Any
    seed: int
    inputs: dict[str, str]
    stage: str
    outside: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class Kind:
    """What keys hold of a kind of stage, and what it is. Bump `version` when its code makes something else than before;
    `libraries` are those whose version changes the outcome. `trains`: by optimizer steps; `checkpoint`: is what it leaves."""

    version: int
    libraries: tuple[str, ...]
    trains: bool = False
    checkpoint: bool = False
    reads_text: bool = False


PRETRAINED = "pretrained"  # the node that makes the teacher out of plain text
GROWN = "grown"  # the node that makes it out of a smaller one, where no text does
_TRAINING = ("torch", "transformers", "tokenizers")
_LEARNS = {"trains": True, "checkpoint": True}
KINDS: dict[str, Kind] = {
    "pretrain": Kind(3, _TRAINING, **_LEARNS, reads_text=True),
    "grow": Kind(1, _TRAINING, checkpoint=True),
    "finetune": Kind(2, _TRAINING, **_LEARNS),
    "adopt": Kind(1, ("transformers",), checkpoint=True),
    "tokenize": Kind(1, ("tokenizers",)),
    "masked_lm": Kind(2, _TRAINING, **_LEARNS, reads_text=True),
    "general": Kind(2, _TRAINING, **_LEARNS, reads_text=True),
    "augment": Kind(1, _TRAINING),
    "distill": Kind(2, _TRAINING, **_LEARNS),
    "quantize_aware": Kind(5, (*_TRAINING, "onnxruntime"), **_LEARNS),
    "export": Kind(4, ("torch", "transformers", "onnx", "onnxscript")),
    "quantize": Kind(10, ("onnx", "onnxruntime")),
}


@dataclass
class Draft:
    """What planning has come to. `latest`: model -> node that made its last checkpoint; `untied`: is the student's so?"""

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    student: StudentCard | None
    corpus: TextSource | None
    seed: int
    base_seed: int
    precision: str
    sizes: dict[str, Dimensions]
    nodes: list[Node] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    current: str = "teacher"
    untied: bool = False

    def add(
        self,
        kind: str,
        name: str,
        model: str,
        spec: Any,
        described: dict[str, Any],
        *,
        inputs: dict[str, str] | None = None,
        outside: dict[str, str] | None = None,
        seed: int | None = None,
        stage: str | None = None,
    ) -> None:
        """Append a node, unless one with its key is there. `outside`: hashes of what no node makes."""
        inputs = inputs or {}
        libraries = {library: version for library, version in versions().items() if library in KINDS[kind].libraries}
        keys = {role: self.key_of(node) for role, node in inputs.items()} | (outside or {})
        key = store.key(kind, KINDS[kind].version, described, keys, libraries)
        if any(node.id == name and node.key != key for node in self.nodes):
            raise self.fails(stage or kind, f"another stage makes `{name}` already; give it another `name`")
        if not any(node.key == key for node in self.nodes):
            seed = self.seed if seed is None else seed
            self.nodes.append(Node(kind, name, model, key, spec, seed, inputs, stage or kind, outside or {}))

    def key_of(self, name: str) -> str:
        for node in self.nodes:
            if node.id == name:
                return node.key
        raise CompressError(f"recipe {self.recipe.name}: nothing makes {name}, which a later stage needs")

    def has(self, name: str) -> bool:
        return any(node.id == name for node in self.nodes)

    def fails(self, stage: str, problem: str) -> CompressError:
        return CompressError(f"recipe {self.recipe.name}, stage {stage}: {problem}")
