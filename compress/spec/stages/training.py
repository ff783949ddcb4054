"""What the specs of training stages share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

from pydantic import Field, ValidationError, field_validator, model_validator

from ...fields import Fraction, NonNegative, Positive, PositiveNumber
from ...losses import LOSSES, Loss
from ...losses.hard_label import HardLabel
from ...losses.loss import LossSpec
from ..stage import StageSpec, problem


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


class Training(StageSpec):
    """Settings of the training loop. An unset field comes from here, or in `finetune` and `distill` from the teacher card if set there."""

    takes_lists: ClassVar[bool] = False  # of rates and epochs

    epochs: PositiveNumber = Field(default=3.0, description="passes over the training split")
    max_steps: Positive | None = Field(default=None, description="limit on optimizer steps, within `epochs`")
    batch_size: Positive = Field(default=32, description="examples per optimizer step")
    micro_batch_size: Positive | None = Field(
        default=None, description="examples per forward pass; gradients are accumulated to `batch_size`"
    )
    learning_rate: PositiveNumber = Field(default=5e-5, description="peak, after the warm-up")
    warmup: Fraction = Field(default=0.1, description="share of the steps in which the learning rate rises")
    schedule: Literal["linear", "cosine", "constant"] = Field(
        default="linear", description="learning rate after the warm-up; linear and cosine end at 0"
    )
    weight_decay: NonNegative = Field(default=0.01, description="of AdamW, except on biases and norms")
    max_grad_norm: PositiveNumber = Field(default=1.0, description="gradients are clipped to this norm")
    dropout: Fraction | None = Field(default=None, description="overrides the model's own hidden and attention dropout")
    max_length: Positive | None = Field(
        default=None, description="in tokens; default: the task's; on plain text 128, or the model's positions if fewer"
    )
    evaluate_every: PositiveNumber = Field(default=1.0, description="epochs between evaluations on the tuning split")
    keep: Literal["best", "last"] = Field(
        default="best", description="checkpoint to keep: the best on the tuning split, or the last"
    )

    @field_validator("epochs", "learning_rate", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        if not cls.takes_lists:
            raise ValueError("expected a number, found a list; a list is for `finetune`")
        return tuple(value)


class PerTask(StageSpec):
    """Settings for individual tasks."""

    per_task: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="task → fields of this stage, e.g. `mrpc: {epochs: 10}`"
    )

    @model_validator(mode="after")
    def _per_task_is_valid(self) -> PerTask:
        whole = self.model_dump(exclude={"per_task"})
        problems: list[Any] = []
        for task, fields in self.per_task.items():
            nested = {name: fields[name] for name in ("per_task", "enabled", "name") if name in fields}
            problems += [problem(("per_task", task, name), "extra_forbidden", value) for name, value in nested.items()]
            try:  # JSON: strict about types, yet accepts a list for a tuple
                type(self).model_validate_json(
                    json.dumps({**whole, **fields, "per_task": {}}, default=str), strict=True
                )
            except ValidationError as error:
                problems += [
                    problem(("per_task", task, *item["loc"]), item["type"], item["input"], item.get("ctx"))
                    for item in error.errors()
                ]
        if problems:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self

    def for_task(self, task: str) -> dict[str, Any]:
        """Return the fields that were written, with those of `task` on top; defaults are left out."""
        written = self.model_dump(exclude_unset=True, exclude={"per_task"})
        return {**written, **self.per_task.get(task, {})}


class OnText(Training):
    """Training on sequences of plain text, which run from one document into the next."""

    attention: Literal["sequence", "document"] = Field(
        default="sequence",
        exclude_if=lambda value: value == "sequence",  # what is dumped determines the store's keys
        description="what a token attends to. sequence: its whole sequence; document: only its own document, which then has its own "
        "[CLS] and positions. No effect on pairs of segments",
    )
    max_tokens: Positive | None = Field(default=None, description="tokens of the text to read; default: all")


class Losses(StageSpec):
    """What a student learns from its teacher."""

    losses: Annotated[tuple[AnyLoss, ...], Field(min_length=1)] = Field(
        default=(HardLabel(),), description="each at most once"
    )
    layer_map: LayerMap | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="which teacher layer each student layer learns from; default: uniform",
    )

    @model_validator(mode="after")
    def _losses_make_sense(self) -> Losses:
        check_named_once(self.losses)
        return self


def check_named_once(losses: tuple[LossSpec, ...]) -> None:
    names = [loss.name for loss in losses]
    if len(set(names)) != len(names):
        raise ValueError(f"losses: each at most once, found {names}")
    if not any(loss.weight > 0 for loss in losses):
        raise ValueError("losses: at least one needs a weight above 0")


def check_pairs(losses: tuple[LossSpec, ...]) -> None:
    names = [loss.name for loss in losses if LOSSES[loss.name].reads == "segment_pairs" and loss.weight > 0]
    if len(names) > 1:
        raise ValueError(f"losses: {' and '.join(names)} read pairs of different kinds; choose one of them")
