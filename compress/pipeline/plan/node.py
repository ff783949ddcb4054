"""A stage of a run as plans see it, and the facts of its kind that they rely on: neither can plan or run anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar

from ...fields import Spec
from ...models.dimensions import Dimensions

S = TypeVar("S", bound=Spec)
S_co = TypeVar("S_co", bound=Spec, covariant=True)


@dataclass(frozen=True)
class KindFacts(Generic[S]):
    """What a plan relies on of a kind of stage; `Kind` adds the functions that plan, check and run it.

    Keys contain `version` (bump it when the stage makes something else than before) and the versions of `libraries`. `trains`: by optimizer
    steps. `checkpoint`: produces one, with the sizes of the model `trained_model`, or of the node's own. `onnx`: produces a model that is
    measured. `reads_text`: reads --corpus. `chooses`: takes the best of its inputs unchanged. `resized`, for a kind that makes its input
    `model` smaller: the new sizes, from the spec and the old ones, before it has run; None if the run chooses them.
    """

    name: str
    version: int
    spec: type[S]
    _: KW_ONLY
    libraries: tuple[str, ...] = ()
    trains: bool = False
    checkpoint: bool = False
    trained_model: str | None = None
    onnx: bool = False
    reads_text: bool = False
    chooses: bool = False
    resized: Callable[[S, Dimensions], Dimensions | None] | None = None


@dataclass(frozen=True)
class Node(Generic[S_co]):
    """One stage of a run.

    `id` is unique in the plan, e.g. `teacher`, `intermediate`, `student-int8`; `model` is what it makes or serves: `teacher`, `student`, or
    a teacher beside the first, e.g. `teacher-2`. `inputs`: the stage's name for an artefact -> the node that makes it. `stage`: its name in
    the recipe. `outside`: hashes of what no node makes.
    """

    kind: KindFacts[Any]
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
