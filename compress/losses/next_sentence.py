from typing import Literal

from jaxtyping import Float, Int

from .features import POOLED
from .loss import Batch, Loss, LossSpec, always
from .tensors import Tensor


class NextSentence(LossSpec):
    """Cross-entropy for telling the next segment of plain text from one of another document (BERT), on the pooler's output."""

    name: Literal["next_sentence"] = "next_sentence"


def next_sentence_loss(logits: Float[Tensor, "batch 2"], other: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Cross-entropy in nats of whether a segment follows the one before it (0) or is of another document (1), batch mean.

    ln 2 for a model that does not know (Devlin et al. 2018, arXiv:1810.04805, §3.1).
    """
    import torch.nn.functional as F

    return F.cross_entropy(logits, other)


def _compute(spec: NextSentence, logits: Tensor, teacher: None, batch: Batch) -> Tensor:
    return next_sentence_loss(logits, batch[spec.name])


NEXT_SENTENCE = Loss(NextSentence, "pairs", always(POOLED, None), _compute, head_classes=2)
