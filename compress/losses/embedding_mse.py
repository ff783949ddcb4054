from typing import Literal

from .features import EMBEDDINGS
from .hidden_mse import hidden_mse_loss
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class EmbeddingMse(LossSpec):
    """Squared error of the embedding outputs, through a learned projection where widths differ."""

    name: Literal["embedding_mse"] = "embedding_mse"


def _compute(spec: EmbeddingMse, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return hidden_mse_loss(student, teacher, batch["attention_mask"])


EMBEDDING_MSE = Loss(
    EmbeddingMse, "states", fixed_features(EMBEDDINGS, EMBEDDINGS), LossForm(_compute, "tokens"), projected=True
)
