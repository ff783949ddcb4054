from jaxtyping import Float, Int
from torch import Tensor


def hidden_mse_loss(
    student: Float[Tensor, "batch length hidden"],
    teacher: Float[Tensor, "batch length hidden"],
    mask: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """Mean over real tokens and features of (student - teacher)².

    Padding (mask 0) never changes the value. A narrower student is projected before
    (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 8 and 9).
    """
    square = (student - teacher).square().mean(-1)
    real = mask.to(square.dtype)
    return (square * real).sum() / real.sum().clamp(min=1)
