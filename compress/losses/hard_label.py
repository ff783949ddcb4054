from typing import Literal

from jaxtyping import Float, Int

from .features import LOGITS
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class HardLabel(LossSpec):
    """Cross-entropy with the gold label; for ranking, of a query's passages with their relevances; for choice, of a question's
    endings; for regression, squared error."""

    name: Literal["hard_label"] = "hard_label"


def hard_label_loss(logits: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Return the cross-entropy with the gold class in nats, averaged over the batch."""
    import torch.nn.functional as F

    return F.cross_entropy(logits, labels)


def _compute(spec: HardLabel, logits: Tensor, teacher: None, batch: Batch) -> Tensor:
    return hard_label_loss(logits, batch["labels"])


HARD_LABEL = Loss(HardLabel, "logits", fixed_features(LOGITS, None), LossForm(_compute))
