import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def next_sentence_loss(logits: Float[Tensor, "batch 2"], other: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Cross-entropy in nats of whether a segment follows the one before it (0) or is of another document (1), batch mean.

    ln 2 for a model that does not know (Devlin et al. 2018, arXiv:1810.04805, §3.1).
    """
    return F.cross_entropy(logits, other)
