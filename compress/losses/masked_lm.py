from typing import Literal

from jaxtyping import Float, Int
from pydantic import Field

from ..fields import Positive
from .features import TOKEN_SCORES
from .loss import Batch, Loss, LossSpec, always
from .tensors import Tensor

IGNORED = -100  # label of a token that is not masked


class MaskedTokens(LossSpec):
    """Cross-entropy of the masked tokens of plain text (BERT), through a head tied to the model's table of words."""

    name: Literal["masked_lm"] = "masked_lm"
    whole_words: bool = Field(
        default=False,
        exclude_if=lambda value: value is False,  # what is dumped decides the store's keys
        description="all pieces of a word are masked, or none",
    )
    masks: Positive | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="different choices of masked tokens before a sequence has its first again, 10 in BERT; default: a new "
        "one each time, as in RoBERTa",
    )


def masked_lm_loss(
    scores: Float[Tensor, "position vocabulary"], labels: Int[Tensor, "batch length"]
) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats of the masked tokens, those whose label is not -100; 0 where there are none.

    `scores` are at their positions, in order (Devlin et al. 2018, arXiv:1810.04805, §3.1).
    """
    import torch.nn.functional as F

    masked = labels != IGNORED
    return F.cross_entropy(scores, labels[masked], reduction="sum") / masked.sum().clamp(min=1)


def _compute(spec: MaskedTokens, scores: Tensor, teacher: None, batch: Batch) -> Tensor:
    return masked_lm_loss(scores, batch["labels"])


MASKED_LM = Loss(MaskedTokens, "tokens", always(TOKEN_SCORES, None), _compute, per_token=True)
