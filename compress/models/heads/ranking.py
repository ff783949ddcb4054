"""One output, how relevant a passage is to a query, from the first token's state; every loss is over the passages of one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...losses.listwise import listwise_cross_entropy_loss, listwise_kl_loss, listwise_soft_cross_entropy_loss
from ...losses.loss import LossForm
from .classification import CLASSIFICATION

if TYPE_CHECKING:
    from torch import Tensor


def _from_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return listwise_kl_loss(student[:, 0], teacher[:, 0], batch["groups"], temperature=spec.temperature)


def _towards_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return listwise_soft_cross_entropy_loss(student[:, 0], teacher[:, 0], batch["groups"], temperature=spec.temperature)


def _from_gold(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return listwise_cross_entropy_loss(student[:, 0], batch["labels"], batch["groups"])


RANKING = replace(
    CLASSIFICATION,
    losses={
        "soft_target": LossForm(_from_teacher, "queries"),
        "soft_cross_entropy": LossForm(_towards_teacher, "queries"),
        "hard_label": LossForm(_from_gold, "scored_queries"),
    },
)
