from jaxtyping import Float
from torch import Tensor

from .soft_target import soft_target_loss


def masked_soft_target_loss(
    student: Float[Tensor, "position vocabulary"],
    teacher: Float[Tensor, "position vocabulary"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """T² · KL(teacher_T ‖ student_T) over the vocabulary in nats, averaged over the hidden positions; 0 where there are none.

    The soft targets of DistilBERT's pre-training (Sanh et al. 2019, arXiv:1910.01108, §2), which its authors' code takes
    at every real token, or, by an option, at the hidden ones alone.
    """
    return soft_target_loss(student, teacher, temperature=temperature) if len(student) else student.sum()
