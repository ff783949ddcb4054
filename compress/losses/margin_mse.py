from typing import Literal

from .features import LOGITS
from .listwise import margin_mse_loss
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class MarginMse(LossSpec):
    """Squared error against the teacher's margins between more and less relevant passages of a query; ranking only."""

    name: Literal["margin_mse"] = "margin_mse"


def _compute(spec: MarginMse, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return margin_mse_loss(student[:, 0], teacher[:, 0], batch["labels"], batch["groups"])


MARGIN_MSE = Loss(
    MarginMse, "logits", fixed_features(LOGITS, LOGITS), LossForm(_compute, "margins"), kinds=("ranking",)
)
