from typing import Literal

from jaxtyping import Float
from pydantic import Field

from ..fields import PositiveNumber
from .features import TOKEN_SCORES
from .loss import Batch, Loss, LossForm, LossSpec, Sizes, fixed_features
from .soft_target import soft_target_loss
from .tensors import Tensor


class MaskedSoftTarget(LossSpec):
    """T² · KL(teacher ‖ student) of both masked-LM heads' predictions over the vocabulary, at the masked tokens of plain text
    (DistilBERT's pre-training)."""

    name: Literal["masked_soft_target"] = "masked_soft_target"
    temperature: PositiveNumber = Field(
        default=2.0, description="T: divides the scores of both heads; higher is softer"
    )


def masked_soft_target_loss(
    student: Float[Tensor, "position vocabulary"],
    teacher: Float[Tensor, "position vocabulary"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return T² · KL(teacher_T ‖ student_T) over the vocabulary in nats, averaged over the masked positions; 0 if there are none.

    The soft targets of DistilBERT's pre-training (Sanh et al. 2019, arXiv:1910.01108, §2); its authors' code takes them at every real token
    or, by an option, at the masked ones alone.
    """
    return soft_target_loss(student, teacher, temperature=temperature) if len(student) else student.sum()


def _compute(spec: MaskedSoftTarget, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return masked_soft_target_loss(student, teacher, temperature=spec.temperature)


def _problem(spec: MaskedSoftTarget, student: Sizes, teacher: Sizes) -> str | None:
    if student.vocabulary == teacher.vocabulary:
        return None
    return (
        f"masked_soft_target compares both models' scores of every token, and needs vocabularies of one size: the student has "
        f"{student.vocabulary}, the teacher {teacher.vocabulary} (vocab_size in config.json); leave the loss out, or start the student "
        "from its teacher"
    )


MASKED_SOFT_TARGET = Loss(
    MaskedSoftTarget,
    "masked_tokens",
    fixed_features(TOKEN_SCORES, TOKEN_SCORES),
    LossForm(_compute, "masked_tokens"),
    problem=_problem,
)
