from jaxtyping import Float, Int
from torch import Tensor


def attention_mse_loss(
    student: Float[Tensor, "batch heads length length"],
    teacher: Float[Tensor, "batch heads length length"],
    mask: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """(student - teacher)² of attention scores before softmax: mean over heads and real pairs of an example, then over the batch.

    A pair of query and key is real when both tokens are; padding never changes the value
    (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 7).
    """
    square = (student - teacher).square().mean(1)
    real = mask.to(square.dtype)
    pairs = (real[:, :, None] * square * real[:, None, :]).sum((1, 2))
    return (pairs / real.sum(1).clamp(min=1).square()).mean()
