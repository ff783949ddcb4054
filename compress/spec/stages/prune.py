"""The spec of `prune`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...fields import Positive
from ..stage import StageSpec


class Prune(StageSpec):
    """Take attention heads and feed-forward neurons out of the last model, without training."""

    flops: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.5, description="share of its layers' FLOPs that is left, at the task's mean length"
    )
    examples: Positive = Field(
        default=2048,
        description="training examples that tell what the loss depends on, and that the repair is fitted to",
    )
    repair: bool = Field(
        default=True,
        description="fit the matrices behind the gaps by least squares to what the whole model gives",
    )
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")
