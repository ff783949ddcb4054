"""The spec of `prune`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from ...fields import Positive
from ..stage import StageSpec

Share = Annotated[float, Field(gt=0, lt=1)]


class Prune(StageSpec):
    """Take attention heads and feed-forward neurons out of the last model, without training."""

    healed: ClassVar[bool] = True

    flops: Share | tuple[Share, ...] = Field(
        default=0.5,
        description="share of its layers' FLOPs that is left, at the task's mean length; of a falling list the result has every "
        "share's scores, and the last one's model goes on",
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

    @model_validator(mode="after")
    def _falls(self) -> Prune:
        shares = self.shares
        if not shares or any(after >= before for before, after in pairwise(shares)):
            raise ValueError(
                f"flops: expected falling shares, the last for the model that goes on; found {list(shares)}"
            )
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """Falling."""
        return self.flops if isinstance(self.flops, tuple) else (self.flops,)
