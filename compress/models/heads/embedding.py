"""No head: a text's vector is computed from the encoder's last states, without weights of its own (`models.sentence_encoders.pooling`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...losses.loss import LossForm
from ...losses.sentence_cosine import sentence_cosine_loss
from ...sessions.outputs import VECTORS
from .head import Head

if TYPE_CHECKING:
    from torch import Tensor


def _from_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return sentence_cosine_loss(student, teacher)


EMBEDDING = Head(
    model="AutoModel",
    suffixes=("Model",),
    trained=(),
    new=("pooler.",),
    losses={
        "soft_target": LossForm(_from_teacher),
        "soft_cross_entropy": LossForm(_from_teacher, same_as="soft_target"),
    },
    bare=True,
    outputs=(VECTORS,),
)
