from typing import Literal

from jaxtyping import Float, Int

from .features import LAST_HIDDEN
from .loss import Batch, Loss, LossForm, LossSpec, Sizes, fixed_features
from .tensors import Tensor, mean_over_tokens


class HiddenCosine(LossSpec):
    """1 - cosine of the last hidden states, over real tokens."""

    name: Literal["hidden_cosine"] = "hidden_cosine"


def hidden_cosine_loss(
    student: Float[Tensor, "batch length hidden"],
    teacher: Float[Tensor, "batch length hidden"],
    mask: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """Return the mean over real tokens of 1 - cos(student, teacher): between 0 (same direction) and 2.

    Padding (mask 0) never changes the value (Sanh et al. 2019, arXiv:1910.01108, §3).
    """
    import torch.nn.functional as F

    return mean_over_tokens(1 - F.cosine_similarity(student, teacher, dim=-1), mask)


def _compute(spec: HiddenCosine, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return hidden_cosine_loss(student, teacher, batch["attention_mask"])


def _problem(spec: HiddenCosine, student: Sizes, teacher: Sizes) -> str | None:
    if student.hidden == teacher.hidden:
        return None
    return (
        f"hidden_cosine needs equal widths: the student has {student.hidden}, the teacher {teacher.hidden}; "
        "choose another student card, or use hidden_mse, which learns a projection"
    )


HIDDEN_COSINE = Loss(
    HiddenCosine, "states", fixed_features(LAST_HIDDEN, LAST_HIDDEN), LossForm(_compute, "tokens"), problem=_problem
)
