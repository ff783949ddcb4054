"""The spec of `relu`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ...fields import Positive
from ..stage import StageSpec


class Relu(StageSpec):
    """Replace the last model's activation with ReLU, which takes less time, without training.

    The output matrices of its layers are then fitted by least squares to what the model gave before.
    """

    activation: ClassVar[str | None] = "relu"

    examples: Positive = Field(default=2048, description="training examples used for the fit")
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")
