"""The record of a loss: its spec, the features it compares, how it is computed, and what it requires of its stage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from ..fields import NonNegative, Spec
from .tensors import Tensor

Batch = dict[str, Tensor]
Pairs = tuple[tuple[int, int], ...]  # matched (student layer, teacher layer), counted from 1
Compared = tuple[tuple[str, str | None], ...]  # (student feature, teacher feature to compare with, or None)
Reads = Literal["classes", "states", "tokens", "pairs"]
# tokens: all real ones; labelled: those with a label; compared: those where a teacher is compared; for ranking, queries: all queries;
# ranked: those with a relevant passage; margins: pairs of passages of different relevance
Unit = Literal["examples", "tokens", "labelled", "compared", "queries", "ranked", "margins"]


class LossSpec(Spec):
    """Recipe options of every loss."""

    name: Any  # a Literal in each subclass
    weight: NonNegative = 1.0


@runtime_checkable
class Sizes(Protocol):
    """The model sizes that a loss may read."""

    @property
    def layers(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...


def _fits(spec: Any, student: Sizes, teacher: Sizes) -> None:
    """Accept any two models."""


@dataclass(frozen=True)
class Loss:
    """A loss of recipes. Its value is the sum of `compute(spec, student, teacher, batch)` over the features it compares.

    `reads`: `classes` of a task, from its head; `states` inside the models, on any text; masked `tokens` of plain text, or `pairs` of its
    segments. `compares(spec, layers)` names the features. `per_token`: the value is a mean over real tokens, not examples; micro-batches
    are weighted accordingly. `projected`: if widths differ, the student's features are first projected to the teacher's width.
    `head_classes`: a learned layer first maps them to so many logits. `problem(spec, student, teacher)` returns why the loss does not fit
    the two models. `kinds`: task kinds it is for; None: all.
    """

    spec: type[Any]
    reads: Reads
    compares: Callable[[Any, Pairs], Compared]
    compute: Callable[[Any, Tensor, Any, Batch], Tensor]
    per_token: bool = False
    projected: bool = False
    head_classes: int | None = None
    problem: Callable[[Any, Any, Any], str | None] = _fits
    kinds: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return self.spec.model_fields["name"].default

    @property
    def of_text(self) -> bool:
        """Whether it reads only plain text."""
        return self.reads in ("tokens", "pairs")

    @property
    def needs_teacher(self) -> bool:
        """Whether the student is compared with a teacher rather than labels."""
        return any(teacher_feature is not None for _, teacher_feature in self.compares(self.spec(), ((1, 1),)))

    @property
    def matches_layers(self) -> bool:
        """Whether it compares the layers that a layer map matches."""
        return not self.compares(self.spec(), ())


def fixed_features(student: str, teacher: str | None) -> Callable[[Any, Pairs], Compared]:
    """Return `compares` of a loss that compares the same feature whatever its spec."""
    return lambda spec, layers: ((student, teacher),)
