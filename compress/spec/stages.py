"""One spec per stage. Every stage is written in a recipe as a mapping with one key: its kind."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from .base import Fraction, NonNegative, Positive, PositiveNumber, Spec
from .losses import HardLabel, LossSpec


class Training(Spec):
    """What the training loop is told. Unset fields come from the teacher card's `finetune`, then from here."""

    epochs: PositiveNumber = Field(default=3.0, description="passes over the training split")
    max_steps: Positive | None = Field(default=None, description="optimizer steps; stops earlier than `epochs`")
    batch_size: Positive = Field(default=32, description="examples per optimizer step")
    micro_batch_size: Positive | None = Field(
        default=None, description="examples per forward; gradients accumulate to batch_size"
    )
    learning_rate: PositiveNumber = Field(default=5e-5, description="peak")
    warmup: Fraction = Field(default=0.1, description="share of the steps with a rising learning rate")
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    weight_decay: NonNegative = Field(default=0.01, description="AdamW, not on biases and norms")
    max_grad_norm: PositiveNumber = 1.0
    dropout: Fraction | None = Field(default=None, description="overrides the model's own hidden and attention dropout")
    max_length: Positive | None = Field(default=None, description="tokens; default: the task's")
    evaluate_every: PositiveNumber = Field(default=1.0, description="epochs between evaluations on the tuning split")
    keep: Literal["best", "last"] = Field(
        default="best", description="checkpoint kept: best on the tuning split, or the last"
    )


def _problem(where: tuple[int | str, ...], kind: str, value: Any, context: dict[str, Any] | None = None) -> Any:
    return {"type": kind, "loc": where, "input": value, "ctx": context or {}}


class _PerTask(Training):
    per_task: dict[str, dict[str, Any]] = Field(default_factory=dict, description="fields that differ for a task")

    @model_validator(mode="after")
    def _per_task_is_valid(self) -> _PerTask:
        whole = self.model_dump(exclude={"per_task"})
        problems: list[Any] = []
        for task, fields in self.per_task.items():
            nested = {"per_task": fields["per_task"]} if "per_task" in fields else {}
            problems += [_problem(("per_task", task, name), "extra_forbidden", value) for name, value in nested.items()]
            try:  # JSON: strict about types, yet a list does for a tuple
                type(self).model_validate_json(json.dumps({**whole, **fields, "per_task": {}}), strict=True)
            except ValidationError as error:
                problems += [
                    _problem(("per_task", task, *item["loc"]), item["type"], item["input"], item.get("ctx"))
                    for item in error.errors()
                ]
        if problems:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self

    def for_task(self, task: str) -> dict[str, Any]:
        """The fields that were written, those of `task` on top; defaults are left out."""
        written = self.model_dump(exclude_unset=True, exclude={"per_task"})
        return {**written, **self.per_task.get(task, {})}


class Finetune(_PerTask):
    """Fine-tune the teacher on the task's labels."""


class Distill(_PerTask):
    """Train the student against the fine-tuned teacher."""

    losses: Annotated[tuple[LossSpec, ...], Field(min_length=1)] = (HardLabel(),)

    @model_validator(mode="after")
    def _losses_make_sense(self) -> Distill:
        names = [loss.name for loss in self.losses]
        if len(set(names)) != len(names):
            raise ValueError(f"losses: each at most once, found {names}")
        if not any(loss.weight > 0 for loss in self.losses):
            raise ValueError("losses: at least one needs a weight above 0")
        return self


class Export(Spec):
    """torch -> one ONNX file, fp32."""

    opset: Annotated[int, Field(ge=18, le=23)] = 20


class Quantize(Spec):
    """fp32 ONNX -> int8 ONNX."""

    method: Literal["dynamic"] = "dynamic"
    per_channel: bool = True
    reduce_range: bool = Field(
        default=False, description="7-bit weights: for CPUs without VNNI, at some cost in accuracy"
    )
    embeddings: bool = Field(default=True, description="quantize the embedding tables too")
    exclude: tuple[str, ...] = Field(default=(), description="node names, as regular expressions, that stay fp32")


# In the order in which a recipe's stages may come.
STAGE_SPECS: dict[str, type[Spec]] = {"finetune": Finetune, "distill": Distill, "export": Export, "quantize": Quantize}
