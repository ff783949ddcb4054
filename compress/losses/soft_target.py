import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def soft_target_loss(
    student: Float[Tensor, "batch classes"],
    teacher: Float[Tensor, "batch classes"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """T² · KL(teacher_T ‖ student_T) in nats, averaged over the batch.

    Zero exactly when the two distributions agree; T² keeps the gradient's scale
    independent of T (Hinton et al. 2015, arXiv:1503.02531, §2).
    """
    target = F.log_softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    return temperature**2 * F.kl_div(prediction, target, reduction="batchmean", log_target=True)
