from typing import Literal

from jaxtyping import Float, Int
from pydantic import Field

from ..fields import Positive
from .features import TOKEN_SCORES
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor

IGNORED = -100  # label of a token that is not masked


class MaskedTokens(LossSpec):
    """Cross-entropy of masked tokens of plain text (BERT), through a head tied to the model's word embeddings."""

    name: Literal["masked_lm"] = "masked_lm"
    whole_words: bool = Field(
        default=False,
        exclude_if=lambda value: value is False,  # dumped fields are part of the store's keys
        description="mask all pieces of a word, or none",
    )
    masks: Positive | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="different maskings of a sequence before the first is used again, 10 in BERT; default: a new one each time, "
        "as in RoBERTa",
    )


def masked_lm_loss(scores: Float[Tensor, "position vocabulary"], labels: Int[Tensor, " position"]) -> Float[Tensor, ""]:
    """Return the mean cross-entropy in nats of the masked tokens; 0 if there are none (Devlin et al. 2018, arXiv:1810.04805, §3.1)."""
    import torch.nn.functional as F

    return F.cross_entropy(scores, labels, reduction="sum") / max(1, len(labels))


def masked_positions(batch: Batch) -> Int[Tensor, " position"]:
    """Return positions of masked tokens, whose label is not -100: sorted indices into `labels` [batch, length], flattened.

    Whoever masks provides them as `masked`, because finding them here would wait for the GPU.
    """
    if "masked" in batch:
        return batch["masked"]
    return (batch["labels"].flatten() != IGNORED).nonzero().flatten()


def _compute(spec: MaskedTokens, scores: Tensor, teacher: None, batch: Batch) -> Tensor:
    return masked_lm_loss(scores, batch["labels"].flatten()[masked_positions(batch)])


MASKED_LM = Loss(MaskedTokens, "masked_tokens", fixed_features(TOKEN_SCORES, None), LossForm(_compute, "masked_tokens"))
