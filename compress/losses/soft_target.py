from typing import Literal

from jaxtyping import Float
from pydantic import Field

from ..fields import PositiveNumber
from .features import LOGITS
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class SoftTarget(LossSpec):
    """T² · KL(teacher ‖ student) over classes; for ranking, over passages; for choice, over endings; for regression, squared error against
    the teacher's score; for sentence vectors, 1 - cosine."""

    name: Literal["soft_target"] = "soft_target"
    temperature: PositiveNumber = Field(
        default=2.0, description="T: divides the logits of both models; higher is softer"
    )


def soft_target_loss(
    student: Float[Tensor, "batch classes"],
    teacher: Float[Tensor, "batch classes"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return T² · KL(teacher_T ‖ student_T) in nats, averaged over the batch.

    Zero exactly when the two distributions agree; T² keeps the gradient's scale independent of T (Hinton et al. 2015, arXiv:1503.02531,
    §2).
    """
    import torch.nn.functional as F

    target = F.log_softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    return temperature**2 * F.kl_div(prediction, target, reduction="batchmean", log_target=True)


def _compute(spec: SoftTarget, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return soft_target_loss(student, teacher, temperature=spec.temperature)


SOFT_TARGET = Loss(SoftTarget, "logits", fixed_features(LOGITS, LOGITS), LossForm(_compute))
