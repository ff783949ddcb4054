"""One output, a score, from the first token's state; every loss is a squared error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...losses.loss import LossForm
from ...losses.squared_error import squared_error_loss
from .classification import CLASSIFICATION

if TYPE_CHECKING:
    from torch import Tensor


def _from_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return squared_error_loss(student, teacher[:, 0])


def _from_gold(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return squared_error_loss(student, batch["labels"])


REGRESSION = replace(
    CLASSIFICATION,
    losses={
        "soft_target": LossForm(_from_teacher),
        "soft_cross_entropy": LossForm(_from_gold, same_as="hard_label"),
        "hard_label": LossForm(_from_gold),
    },
)
