import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def hidden_cosine_loss(
    student: Float[Tensor, "batch length hidden"],
    teacher: Float[Tensor, "batch length hidden"],
    mask: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """Mean over real tokens of 1 - cos(student, teacher): between 0 (same direction) and 2.

    Padding (mask 0) never changes the value (Sanh et al. 2019, arXiv:1910.01108, §3).
    """
    distance = 1 - F.cosine_similarity(student, teacher, dim=-1)
    real = mask.to(distance.dtype)
    return (distance * real).sum() / real.sum().clamp(min=1)
