"""Loss terms as a recipe writes them. The mathematics is in `compress.losses`; names agree, by a test."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import NonNegative, PositiveNumber, Spec


class SoftTarget(Spec):
    """T² · KL(teacher ‖ student) of the classes; for regression, squared error to the teacher's score."""

    name: Literal["soft_target"] = "soft_target"
    weight: NonNegative = 1.0
    temperature: PositiveNumber = 2.0


class HardLabel(Spec):
    """Cross-entropy with the gold label; for regression, squared error."""

    name: Literal["hard_label"] = "hard_label"
    weight: NonNegative = 1.0


class HiddenCosine(Spec):
    """1 - cosine of the last hidden states, over real tokens."""

    name: Literal["hidden_cosine"] = "hidden_cosine"
    weight: NonNegative = 1.0


LossSpec = Annotated[SoftTarget | HardLabel | HiddenCosine, Field(discriminator="name")]
