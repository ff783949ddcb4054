import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def hard_label_loss(logits: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Cross-entropy with the gold class in nats, averaged over the batch."""
    return F.cross_entropy(logits, labels)
