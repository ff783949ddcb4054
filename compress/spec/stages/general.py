"""The spec of `general`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...fields import Positive, PositiveNumber
from ...losses import LOSSES
from ...losses.attention_mse import AttentionMse
from ...losses.embedding_mse import EmbeddingMse
from ...losses.hidden_mse import HiddenMse
from .training import AnyLoss, Losses, OnText, check_pairs


class General(Losses, OnText):
    """Train the student's encoder on plain text: against the teacher before its fine-tuning, or self-supervised."""

    serves_distill: ClassVar[bool] = True
    reserved: ClassVar[tuple[str, ...]] = ("encoder",)

    losses: Annotated[tuple[AnyLoss, ...], Field(min_length=1)] = Field(
        default=(EmbeddingMse(), HiddenMse(), AttentionMse()),
        description="each at most once; losses on classes are not allowed",
    )
    batch_size: Positive = Field(default=256, description="sequences per optimizer step")
    learning_rate: PositiveNumber = Field(default=1e-4, description="peak, after the warm-up")
    enabled: Literal["auto"] | bool = Field(
        default="auto",
        exclude=True,
        description="auto: when `--corpus` is given and the teacher's weights are not random",
    )

    @model_validator(mode="after")
    def _no_labels(self) -> General:
        if wrong := [loss.name for loss in self.losses if LOSSES[loss.name].reads == "logits"]:
            raise ValueError(f"losses: plain text has no classes, which {', '.join(wrong)} compares; choose others")
        check_pairs(self.losses)
        return self
