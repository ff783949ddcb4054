"""The record of a loss: its spec, the features it compares, how it is computed, and what it requires of its stage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from ..fields import NonNegative, Spec
from .tensors import Tensor

Batch = dict[str, Tensor]
Pairs = tuple[tuple[int, int], ...]  # matched (student layer, teacher layer), counted from 1
Compared = tuple[tuple[str, str | None], ...]  # (student feature, teacher feature to compare with, or None)
# What a loss is computed from: `logits` of the task's head, which for a sentence encoder are vectors; `states` inside the models, such as
# hidden states and attention scores, on any text; `masked_tokens` of plain text; `segment_pairs` of plain text.
Reads = Literal["logits", "states", "masked_tokens", "segment_pairs"]
# What a loss is the mean over. `tokens`: all but padding; `masked_tokens`: those of plain text; `labelled_tokens`: those with a label;
# `compared_tokens`: those where student and teacher are compared. For groups of texts, `queries`: all of them; `scored_queries`: those with
# a relevant passage, or a right ending; `margins`: pairs of a query's passages, one more relevant than the other.
MeanOver = Literal[
    "examples",
    "tokens",
    "masked_tokens",
    "labelled_tokens",
    "compared_tokens",
    "queries",
    "scored_queries",
    "margins",
]


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


Compute = Callable[[Any, Tensor, Any, Batch], Tensor]  # of (spec, student, teacher or None, batch)


@dataclass(frozen=True)
class LossForm:
    """How a loss is computed: for most task kinds `Loss.form`; a kind whose logits are no class scores has its own (`Head.losses`).

    `mean_over`: micro-batches and processes are weighted by how many of these they have. `same_as`: another loss, with which this one
    coincides in this form.
    """

    compute: Compute
    mean_over: MeanOver = "examples"
    same_as: str | None = None


def _fits(spec: Any, student: Sizes, teacher: Sizes) -> None:
    """Accept any two models."""


@dataclass(frozen=True)
class Loss:
    """A loss of recipes. Its value is the sum of `form.compute(spec, student, teacher, batch)` over the features that it compares, which
    `compares(spec, layers)` names.

    `reads`: what these are. `form`: how it is computed, unless the head of the task's kind has another form. `projected`: if widths differ,
    the student's features are first projected to the teacher's width. `head_classes`: a learned layer first maps them to so many logits.
    `problem(spec, student, teacher)` returns why the loss does not fit the two models. `kinds`: task kinds it is for; None: all.
    `compares_texts`: with each other, within a forward pass; so one of a single text teaches nothing.
    """

    spec: type[Any]
    reads: Reads
    compares: Callable[[Any, Pairs], Compared]
    form: LossForm
    projected: bool = False
    head_classes: int | None = None
    problem: Callable[[Any, Any, Any], str | None] = _fits
    kinds: tuple[str, ...] | None = None
    compares_texts: bool = False

    @property
    def name(self) -> str:
        return self.spec.model_fields["name"].default

    @property
    def of_text(self) -> bool:
        """Whether it reads only plain text."""
        return self.reads in ("masked_tokens", "segment_pairs")

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
