"""Label logits, independent decisions, from the first token's state: every loss is over Bernoulli distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...losses.bernoulli import bernoulli_cross_entropy_loss, bernoulli_kl_loss
from ...losses.loss import LossForm
from .classification import CLASSIFICATION

if TYPE_CHECKING:
    from torch import Tensor


def _from_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return bernoulli_kl_loss(student, teacher, temperature=spec.temperature)


def _towards_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return bernoulli_cross_entropy_loss(student / spec.temperature, (teacher / spec.temperature).sigmoid())


def _from_gold(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return bernoulli_cross_entropy_loss(student, batch["labels"])


MULTILABEL = replace(
    CLASSIFICATION,
    losses={
        "soft_target": LossForm(_from_teacher),
        "soft_cross_entropy": LossForm(_towards_teacher),
        "hard_label": LossForm(_from_gold),
    },
)
