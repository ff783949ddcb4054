"""The spec of `masked_lm`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ...fields import Fraction, PositiveNumber
from .training import OnText


class MaskedLm(OnText):
    """Train a masked-LM head on plain text, for `augment` or `general`, if the teacher has none. A copy of the teacher's encoder, except
    its word embeddings, is trained with the head. Stages that use the head use this copy; `finetune` starts from the original encoder."""

    serves_distill: ClassVar[bool] = True
    reserved: ClassVar[tuple[str, ...]] = ("masked-lm",)

    epochs: PositiveNumber = Field(default=1.0, description="passes over the text")
    learning_rate: PositiveNumber = Field(default=4e-4, description="peak, after the warm-up")
    dropout: Fraction | None = Field(default=None, description="on hidden states and attention; default: 0")
    enabled: Literal["auto"] | bool = Field(
        default="auto", exclude=True, description="auto: when another stage needs it and `--corpus` is given"
    )
