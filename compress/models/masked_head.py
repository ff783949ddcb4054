"""The masked-LM objective: a head on an encoder, computed at masked positions only."""

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .features import Batch, Features
from .masked_lm import IGNORED, _head


class MaskedLmObjective(nn.Module):
    """For the training loop beside the encoder of `model`: owns its head, which trains with it.

    The loss is the mean cross-entropy in nats over the positions whose label is not -100.
    """

    student_features = frozenset({"hidden[-1]"})
    teacher_features: frozenset[str] = frozenset()
    per_token = frozenset({"masked_lm"})

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = [model]  # in a list: its encoder is not this module's
        kept = {id(parameter) for parameter in model.base_model.parameters()}
        own = [parameter for parameter in model.parameters() if id(parameter) not in kept]
        self.head = nn.ParameterList(own)

    def forward(self, student: Features, teacher: Features, batch: Batch) -> dict[str, Tensor]:
        (model,) = self._model
        chosen = batch["labels"] != IGNORED
        dense, activation, norm, last = _head(model)
        scores = last(norm(activation(dense(student["hidden[-1]"][chosen])))).float()
        loss = cross_entropy(scores, batch["labels"][chosen], reduction="sum") / chosen.sum().clamp(min=1)
        return {"masked_lm": loss}
