"""Label logits for every token, from its last state alone; such a model has no pooler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...losses.loss import LossForm
from ...losses.tokens import token_cross_entropy_loss, token_kl_loss, token_soft_cross_entropy_loss
from .head import Head

if TYPE_CHECKING:
    from torch import Tensor


def _from_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return token_kl_loss(student, teacher, batch["compared"], temperature=spec.temperature)


def _towards_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return token_soft_cross_entropy_loss(student, teacher, batch["compared"], temperature=spec.temperature)


def _from_gold(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return token_cross_entropy_loss(student, batch["labels"])


TAGGING = Head(
    model="AutoModelForTokenClassification",
    suffixes=("ForTokenClassification",),
    trained=("classifier.",),
    new=("classifier.", "head."),  # ModernBERT has a layer before the classifier
    losses={
        "soft_target": LossForm(_from_teacher, "compared_tokens"),
        "soft_cross_entropy": LossForm(_towards_teacher, "compared_tokens"),
        "hard_label": LossForm(_from_gold, "labelled_tokens"),
    },
    on_tokens="classifier",
)
