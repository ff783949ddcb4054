import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def sentence_order_loss(logits: Float[Tensor, "batch 2"], swapped: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Cross-entropy in nats of whether two segments of a document stand in their order (0) or swapped (1), batch mean.

    ln 2 for a model that does not know (Lan et al. 2020, arXiv:1909.11942, §3.1).
    """
    return F.cross_entropy(logits, swapped)
