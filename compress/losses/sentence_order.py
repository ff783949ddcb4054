from typing import Literal

from jaxtyping import Float, Int

from .features import POOLED
from .loss import Batch, Loss, LossSpec, always
from .tensors import Tensor


class SentenceOrder(LossSpec):
    """Cross-entropy for detecting swapped consecutive segments of plain text (ALBERT), on the pooler's output."""

    name: Literal["sentence_order"] = "sentence_order"


def sentence_order_loss(logits: Float[Tensor, "batch 2"], swapped: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Cross-entropy in nats of whether two segments of a document stand in their order (0) or swapped (1), batch mean.

    ln 2 for a model that does not know (Lan et al. 2020, arXiv:1909.11942, §3.1).
    """
    import torch.nn.functional as F

    return F.cross_entropy(logits, swapped)


def _compute(spec: SentenceOrder, logits: Tensor, teacher: None, batch: Batch) -> Tensor:
    return sentence_order_loss(logits, batch[spec.name])


SENTENCE_ORDER = Loss(SentenceOrder, "pairs", always(POOLED, None), _compute, head_classes=2)
