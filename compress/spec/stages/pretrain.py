"""The spec of `pretrain`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...fields import Fraction, Positive, PositiveNumber
from ...losses.masked_lm import MaskedTokens
from .training import OnText, TextLoss, check_named_once, check_pairs


class Pretrain(OnText):
    """Pre-train the teacher itself on plain text, before fine-tuning: from random weights or from a checkpoint."""

    reserved: ClassVar[tuple[str, ...]] = ("pretrained",)

    losses: Annotated[tuple[TextLoss, ...], Field(min_length=1)] = Field(
        default=(MaskedTokens(),),
        description="`masked_lm`, `next_sentence` or `sentence_order`; not both of the last two",
    )
    epochs: PositiveNumber = Field(default=1.0, description="passes over the text")
    batch_size: Positive = Field(default=256, description="sequences per optimizer step")
    learning_rate: PositiveNumber = Field(default=1e-4, description="peak, after the warm-up")
    dropout: Fraction | None = Field(default=0.0, description="on hidden states and attention; null: the model's own")
    held_out: Fraction = Field(
        default=0.01,
        description="share of sequences held out of training, on which the reported perplexity is computed",
    )
    start: Literal["random", "cooccurrence"] = Field(
        default="random",
        exclude_if=lambda value: value == "random",  # what is dumped determines the store's keys
        description="initialization of a BERT or RoBERTa with random weights. random: as drawn; cooccurrence: from word frequencies and "
        "neighbours counted in the text. Weights of a checkpoint, or grown from a smaller model, are not changed",
    )
    enabled: Literal["auto"] | bool = Field(
        default="auto", exclude=True, description="auto, true: needs `--corpus`; false: left out"
    )

    @model_validator(mode="after")
    def _losses_go_together(self) -> Pretrain:
        check_named_once(self.losses)
        check_pairs(self.losses)
        return self
