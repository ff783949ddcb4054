"""Masked-LM heads next to encoders, which score masked tokens only."""

from typing import Any

import torch
from torch import Tensor, nn

from ..losses.features import LAST_HIDDEN, WORDS
from .features.named import Batch, Features
from .masked_lm import decoder, token_scores


class MaskedLmHeads(nn.Module):
    """For an objective next to the encoder of `model`: owns the head, which is trained with it.

    A decoder tied to the encoder's word table uses the table of the encoder's forward, named in `student_features`. `teacher`: the masked
    language model to compare with, of which only the head is run here.
    """

    def __init__(self, model: Any, teacher: Any = None) -> None:
        super().__init__()
        tied = decoder(model).weight is model.get_input_embeddings().weight
        self.student_features = frozenset({LAST_HIDDEN} | ({WORDS} if tied else set()))
        self._model = [model]  # in a list, so that its encoder is not a submodule
        self._teacher = [teacher]
        kept = {id(parameter) for parameter in model.base_model.parameters()}
        own = [parameter for parameter in model.parameters() if id(parameter) not in kept]
        self.head = nn.ParameterList(own)

    def scores(self, student: Features, batch: Batch) -> Tensor:
        """Return the student's `token_scores` from its `student_features`."""
        return token_scores(self._model[0], batch, student[LAST_HIDDEN], student.get(WORDS))

    def teacher_scores(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Return the teacher's `token_scores` from its last hidden states, without gradients."""
        with torch.no_grad():
            return token_scores(self._teacher[0], batch, hidden)

    def teacher_to(self, device: torch.device) -> None:
        """Move the teacher, if there is one, to `device`."""
        if self._teacher[0] is not None:
            self._teacher[0].to(device)
