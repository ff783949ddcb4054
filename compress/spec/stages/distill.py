"""The spec of `distill`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, model_validator

from ...fields import Name
from ...losses import LOSSES
from .training import Losses, PerTask, Training


class Distill(PerTask, Losses, Training):
    """Train the student against the fine-tuned teacher."""

    repeats: ClassVar[bool] = True

    name: Name | None = Field(default=None, exclude=True, description="name to tell several distill stages apart")
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")

    @model_validator(mode="after")
    def _labels_of_the_task(self) -> Distill:
        if wrong := [loss.name for loss in self.losses if LOSSES[loss.name].of_text]:
            raise ValueError(f"losses: {', '.join(wrong)} needs plain text, which no distill stage reads")
        return self
