"""Loss specs to weighted, named terms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from .errors import CompressError
from .losses import hard_label_loss, hidden_cosine_loss, soft_target_loss, squared_error_loss
from .models.features import Batch, Features
from .spec.base import Spec

TermFunction = Callable[[Any, Features, Features, Batch], Tensor]


@dataclass(frozen=True)
class Term:
    """How a loss spec becomes a number: which features it reads, and the function of (spec, student, teacher, batch).

    `per_token`: it is a mean over real tokens, not over examples; micro-batches are weighted accordingly.
    """

    compute: TermFunction
    student: tuple[str, ...] = ("logits",)
    teacher: tuple[str, ...] = ()
    per_token: bool = False


def _soft_target(spec: Any, student: Features, teacher: Features, batch: Batch) -> Tensor:
    if _regression(batch):
        return squared_error_loss(student["logits"], teacher["logits"][:, 0])
    return soft_target_loss(student["logits"], teacher["logits"], temperature=spec.temperature)


def _hard_label(spec: Any, student: Features, teacher: Features, batch: Batch) -> Tensor:
    if _regression(batch):
        return squared_error_loss(student["logits"], batch["labels"])
    return hard_label_loss(student["logits"], batch["labels"])


def _hidden_cosine(spec: Any, student: Features, teacher: Features, batch: Batch) -> Tensor:
    return hidden_cosine_loss(student["hidden[-1]"], teacher["hidden[-1]"], batch["attention_mask"])


def _regression(batch: Batch) -> bool:
    return batch["labels"].is_floating_point()


TERMS: dict[str, Term] = {
    "soft_target": Term(_soft_target, teacher=("logits",)),
    "hard_label": Term(_hard_label),
    "hidden_cosine": Term(_hidden_cosine, student=("hidden[-1]",), teacher=("hidden[-1]",), per_token=True),
}


class Objective(nn.Module):
    """The weighted sum of a recipe's losses. Owns what a loss learns beside the student (projections)."""

    def __init__(self, losses: Sequence[Spec]) -> None:
        super().__init__()
        self._losses: list[Any] = [loss for loss in losses if getattr(loss, "weight", 1.0) > 0]
        names = [loss.name for loss in self._losses]
        if not names or len(set(names)) != len(names):
            raise CompressError(
                f"losses: expected different ones, at least one of them with a weight above 0; found {names}"
            )
        terms = [TERMS[name] for name in names]
        self.student_features = frozenset(name for term in terms for name in term.student) | {"logits"}
        self.teacher_features = frozenset(name for term in terms for name in term.teacher)
        self.per_token = frozenset(name for name in names if TERMS[name].per_token)

    def forward(self, student: Features, teacher: Features, batch: Batch) -> dict[str, Tensor]:
        """name -> weight · loss, each a scalar; their sum is what is minimised. Computed in fp32."""
        wide = {name: value.float() for name, value in student.items()}
        goal = {name: value.float() for name, value in teacher.items()}
        return {loss.name: loss.weight * TERMS[loss.name].compute(loss, wide, goal, batch) for loss in self._losses}
