"""The masked-LM objective: a head on an encoder, computed at masked positions only."""

from typing import Any

from torch import Tensor, nn

from .features import Batch, Features
from .masked_lm import masked_lm_loss


class MaskedLmObjective(nn.Module):
    """For the training loop beside the encoder of `model`: owns its head, which trains with it.

    The loss is `masked_lm_loss`.
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
        return {"masked_lm": masked_lm_loss(model, batch, student["hidden[-1]"])}
