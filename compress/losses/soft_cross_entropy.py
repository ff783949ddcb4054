from typing import Literal

from jaxtyping import Float
from pydantic import Field

from ..fields import PositiveNumber
from .features import LOGITS
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class SoftCrossEntropy(LossSpec):
    """Cross-entropy with the teacher's softened classes, passages (ranking) or endings (choice); for regression, squared
    error against the gold score; for sentence vectors, 1 - cosine."""

    name: Literal["soft_cross_entropy"] = "soft_cross_entropy"
    temperature: PositiveNumber = Field(
        default=1.0, description="T: divides the logits of both models; higher is softer"
    )


def soft_cross_entropy_loss(
    student: Float[Tensor, "batch classes"],
    teacher: Float[Tensor, "batch classes"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return -Σ p_teacher · log p_student of both softmax(logits / T), in nats, averaged over the batch.

    Smallest, with gradient zero, if the two distributions agree; it is then the teacher's entropy and not 0. No T² (Jiao et al. 2020,
    arXiv:1909.10351, §3.1, eq. 10).
    """
    import torch.nn.functional as F

    target = F.softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    return -(target * prediction).sum(-1).mean()


def _compute(spec: SoftCrossEntropy, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return soft_cross_entropy_loss(student, teacher, temperature=spec.temperature)


SOFT_CROSS_ENTROPY = Loss(SoftCrossEntropy, "logits", fixed_features(LOGITS, LOGITS), LossForm(_compute))
