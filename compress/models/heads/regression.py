"""One output, a score, from the first token's state; every loss is a squared error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
    losses={"soft_target": _from_teacher, "soft_cross_entropy": _from_gold, "hard_label": _from_gold},
    equal={"soft_cross_entropy": "hard_label"},
)
