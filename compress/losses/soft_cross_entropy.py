import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def soft_cross_entropy_loss(
    student: Float[Tensor, "batch classes"],
    teacher: Float[Tensor, "batch classes"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """-Σ p_teacher · log p_student of both softmax(logits / T), in nats, averaged over the batch.

    Smallest, and with a gradient of zero, where the two distributions agree; there it is the
    teacher's entropy and not 0. No T² (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 10).
    """
    target = F.softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    return -(target * prediction).sum(-1).mean()
