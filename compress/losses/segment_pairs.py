from typing import Literal

from jaxtyping import Float, Int

from .features import POOLED
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class NextSentence(LossSpec):
    """Cross-entropy for telling the next segment of plain text from one of another document (BERT), on the pooler's output."""

    name: Literal["next_sentence"] = "next_sentence"


class SentenceOrder(LossSpec):
    """Cross-entropy for detecting swapped consecutive segments of plain text (ALBERT), on the pooler's output."""

    name: Literal["sentence_order"] = "sentence_order"


def segment_pair_loss(logits: Float[Tensor, "batch 2"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Return the cross-entropy in nats of a binary label of a pair of segments, batch mean; ln 2 for a model that cannot tell.

    Next sentence: the second follows the first (0) or is from another document (1) (Devlin et al. 2018, arXiv:1810.04805, §3.1). Sentence
    order: two segments of a document are in order (0) or swapped (1) (Lan et al. 2020, arXiv:1909.11942, §3.1).
    """
    import torch.nn.functional as F

    return F.cross_entropy(logits, labels)


def _compute(spec: NextSentence | SentenceOrder, logits: Tensor, teacher: None, batch: Batch) -> Tensor:
    return segment_pair_loss(logits, batch[spec.name])


NEXT_SENTENCE = Loss(NextSentence, "segment_pairs", fixed_features(POOLED, None), LossForm(_compute), head_classes=2)
SENTENCE_ORDER = Loss(SentenceOrder, "segment_pairs", fixed_features(POOLED, None), LossForm(_compute), head_classes=2)
