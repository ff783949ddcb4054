from jaxtyping import Float, Int
from torch import Tensor

from .documents import same_document


def attention_mse_loss(
    student: Float[Tensor, "batch heads length length"],
    teacher: Float[Tensor, "batch heads length length"],
    mask: Int[Tensor, "batch length"],
    documents: Int[Tensor, "batch length"] | None = None,
) -> Float[Tensor, ""]:
    """(student - teacher)² of attention scores before softmax: mean over heads and real pairs of an example, then over the batch.

    A pair of query and key is real when both tokens are, and of one document where a sequence has several; others never
    change the value (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 7).
    """
    square = (student - teacher).square().mean(1)
    real = mask.to(square.dtype)
    pairs = real[:, :, None] * real[:, None, :]
    if documents is not None:
        pairs = pairs * same_document(documents)
    return ((pairs * square).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)).mean()
