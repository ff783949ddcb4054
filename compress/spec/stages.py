"""One spec per stage. Every stage is written in a recipe as a mapping with one key: its kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .base import Fraction, NonNegative, Positive, PositiveNumber, Spec
from .losses import HardLabel, LossSpec


class Training(Spec):
    """What the training loop is told. Unset fields come from the teacher card's `finetune`, then from here."""

    epochs: PositiveNumber = Field(3.0, description="passes over the training split")
    max_steps: Positive | None = Field(None, description="optimizer steps; stops earlier than `epochs`")
    batch_size: Positive = Field(32, description="examples per optimizer step")
    micro_batch_size: Positive | None = Field(None, description="examples per forward; gradients accumulate to batch_size")
    learning_rate: PositiveNumber = Field(5e-5, description="peak")
    warmup: Fraction = Field(0.1, description="share of the steps with a rising learning rate")
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    weight_decay: NonNegative = Field(0.01, description="AdamW, not on biases and norms")
    max_grad_norm: PositiveNumber = 1.0
    dropout: Fraction | None = Field(None, description="overrides the model's own hidden and attention dropout")
    max_length: Positive | None = Field(None, description="tokens; default: the task's")
    evaluate_every: PositiveNumber = Field(1.0, description="epochs between evaluations on the tuning split")
    keep: Literal["best", "last"] = Field("best", description="checkpoint kept: best on the tuning split, or the last")


class _PerTask(Training):
    per_task: dict[str, dict[str, Any]] = Field(default_factory=dict, description="fields that differ for a task")

    @model_validator(mode="after")
    def _per_task_is_valid(self) -> _PerTask:
        for task, fields in self.per_task.items():
            unknown = set(fields) - set(type(self).model_fields) | ({"per_task"} & set(fields))
            if unknown:
                raise ValueError(f"per_task.{task}: unknown key {sorted(unknown)}")
            type(self).model_validate({**self.model_dump(exclude={"per_task"}), **fields})
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


class Export(Spec):
    """torch -> one ONNX file, fp32."""

    opset: Annotated[int, Field(ge=18, le=23)] = 20


class Quantize(Spec):
    """fp32 ONNX -> int8 ONNX."""

    method: Literal["dynamic"] = "dynamic"
    per_channel: bool = True
    reduce_range: bool = Field(False, description="7-bit weights: for CPUs without VNNI, at some cost in accuracy")
    embeddings: bool = Field(True, description="quantize the embedding tables too")
    exclude: tuple[str, ...] = Field((), description="node names, as regular expressions, that stay fp32")


STAGE_SPECS: dict[str, type[Spec]] = {"finetune": Finetune, "distill": Distill, "export": Export, "quantize": Quantize}
