"""What a loss is: its spec, the features that it compares, how they become a number, and what it asks of its stage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from ..fields import NonNegative, Spec
from .tensors import Tensor

Batch = dict[str, Tensor]
Pairs = tuple[tuple[int, int], ...]  # matched (student layer, teacher layer), counted from 1
Compared = tuple[
    tuple[str, str | None], ...
]  # features of the student, each with the teacher's that it is held against
Reads = Literal["classes", "states", "tokens", "pairs"]
# tokens: all real ones, those with a label, or that a teacher answers; of ranked examples the queries, those with a relevant
# passage, or the pairs of passages that are not as relevant as each other
Unit = Literal["examples", "tokens", "labelled", "compared", "queries", "ranked", "margins"]


class LossSpec(Spec):
    """What a recipe may say of any loss."""

    name: Any  # of each a literal
    weight: NonNegative = 1.0


@runtime_checkable
class Sizes(Protocol):
    """What a loss may ask of the sizes of a model."""

    @property
    def layers(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...


def _fits(spec: Any, student: Sizes, teacher: Sizes) -> None:
    """Any two models will do."""


@dataclass(frozen=True)
class Loss:
    """A loss of recipes. Its value is the sum of `compute(spec, student, teacher, batch)` over the features it compares.

    `reads`: `classes` of a task, from its head; `states` inside the models, on any text; masked `tokens` of plain text, or
    `pairs` of its segments. `compares(spec, layers)` names the features. `per_token`: the value is a mean over real tokens, not
    over examples; micro-batches are weighted accordingly. `projected`: the student's features are taken to the teacher's width
    first, where widths differ. `head_classes`: to so many logits first, by a learned layer. `problem(spec, student, teacher)`
    says what the loss asks of the two models and does not find. `kinds`: of tasks that it is for; all, if it does not say.
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
        """Whether it reads plain text alone."""
        return self.reads in ("tokens", "pairs")

    @property
    def needs_teacher(self) -> bool:
        """Whether the student is held against a teacher, and not against labels."""
        return any(theirs is not None for _, theirs in self.compares(self.spec(), ((1, 1),)))

    @property
    def matches_layers(self) -> bool:
        """Whether it compares those layers that a layer map matches."""
        return not self.compares(self.spec(), ())


def always(student: str, teacher: str | None) -> Callable[[Any, Pairs], Compared]:
    """For a loss that compares the same feature whatever its spec."""
    return lambda spec, layers: ((student, teacher),)
