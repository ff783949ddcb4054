"""The losses that a stage may have, as types of its fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Field

from ..fields import Positive
from ..losses import LOSSES, Loss
from ..losses.loss import LossSpec


def _one_of(losses: Iterable[Loss]) -> Any:
    return Annotated[Union[tuple(loss.spec for loss in losses)], Field(discriminator="name")]  # noqa: UP007


if TYPE_CHECKING:
    AnyLoss = TextLoss = LossSpec
else:
    AnyLoss = _one_of(LOSSES.values())
    TextLoss = _one_of(loss for loss in LOSSES.values() if loss.of_text and not loss.needs_teacher)

LayerMap = (
    Literal["uniform", "top", "bottom"]
    | Annotated[tuple[tuple[Positive, Positive], ...], Field(min_length=1, description="(student, teacher), from 1")]
)
