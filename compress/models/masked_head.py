"""The masked-LM objective: a head on an encoder, computed at masked positions only."""

from typing import Any

import torch
from torch import Tensor, nn

from .features import Batch, Features
from .masked_lm import decoder, token_loss, token_scores


class MaskedLmObjective(nn.Module):
    """For the training loop beside the encoder of `model`: owns its head, which trains with it.

    The loss is `masked_lm_loss`; a decoder that is tied to the encoder's words has those that the encoder was computed with.
    `teacher`: the masked language model whose answers the student's are held against, of which only the head is run here.
    """

    teacher_features: frozenset[str] = frozenset()
    per_token = frozenset({"masked_lm"})
    heads_run = (True, False)

    def __init__(self, model: Any, teacher: Any = None) -> None:
        super().__init__()
        tied = decoder(model).weight is model.get_input_embeddings().weight
        self.student_features = frozenset({"hidden[-1]"} | ({"words"} if tied else set()))
        self._model = [model]  # in a list: its encoder is not this module's
        self._teacher = [teacher]
        kept = {id(parameter) for parameter in model.base_model.parameters()}
        own = [parameter for parameter in model.parameters() if id(parameter) not in kept]
        self.head = nn.ParameterList(own)

    def forward(self, student: Features, teacher: Features, batch: Batch) -> dict[str, Tensor]:
        return {"masked_lm": token_loss(self.scores(student, batch), batch)}

    def scores(self, student: Features, batch: Batch) -> Tensor:
        """The student's `token_scores` from its `student_features`."""
        return token_scores(self._model[0], batch, student["hidden[-1]"], student.get("words"))

    def teacher_scores(self, hidden: Tensor, batch: Batch) -> Tensor:
        """The teacher's from its own, without gradients."""
        teacher = self._teacher[0].to(hidden.device)
        with torch.no_grad():
            return token_scores(teacher, batch, hidden)
