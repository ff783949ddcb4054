"""One spec per stage. Every stage is written in a recipe as a mapping with one key: its kind."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from .base import Fraction, Name, NonNegative, Positive, PositiveNumber, Spec
from .losses import (
    OF_CLASSES,
    OF_PAIRS,
    OF_TEXT,
    AttentionMse,
    BlockSpread,
    EmbeddingMse,
    HardLabel,
    HiddenMse,
    LayerMap,
    LossSpec,
    MaskedTokens,
    SoftTarget,
    TextLossSpec,
)
from .quantization import Quantize


class Training(Spec):
    """What the training loop is told. Unset fields come from the teacher card's `finetune`, then from here."""

    epochs: PositiveNumber = Field(default=3.0, description="passes over the training split")
    max_steps: Positive | None = Field(default=None, description="optimizer steps; stops earlier than `epochs`")
    batch_size: Positive = Field(default=32, description="examples per optimizer step")
    micro_batch_size: Positive | None = Field(
        default=None, description="examples per forward; gradients accumulate to batch_size"
    )
    batch_warmup: Fraction | None = Field(
        default=None,
        exclude_if=lambda value: value is None,  # what is dumped decides the store's keys
        description="share of the steps in which batches grow, evenly, from an eighth of batch_size",
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


def problem(where: tuple[int | str, ...], kind: str, value: Any, context: dict[str, Any] | None = None) -> Any:
    """One of a `ValidationError`'s, so that a check over several fields says which one is wrong."""
    return {"type": kind, "loc": where, "input": value, "ctx": context or {}}


class PerTask(Spec):
    """A spec of which some fields differ for a task."""

    per_task: dict[str, dict[str, Any]] = Field(default_factory=dict, description="fields that differ for a task")

    @model_validator(mode="after")
    def _per_task_is_valid(self) -> PerTask:
        whole = self.model_dump(exclude={"per_task"})
        problems: list[Any] = []
        for task, fields in self.per_task.items():
            nested = {name: fields[name] for name in ("per_task", "enabled", "name") if name in fields}
            problems += [problem(("per_task", task, name), "extra_forbidden", value) for name, value in nested.items()]
            try:  # JSON: strict about types, yet a list does for a tuple
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
        """The fields that were written, those of `task` on top; defaults are left out."""
        written = self.model_dump(exclude_unset=True, exclude={"per_task"})
        return {**written, **self.per_task.get(task, {})}


class OnText(Training):
    """Training on sequences of plain text, which hold the end of a document and the beginning of the next."""

    attention: Literal["sequence", "document"] = Field(
        default="sequence",
        exclude_if=lambda value: value == "sequence",  # what is dumped decides the store's keys
        description="what a token sees: all of its sequence; or its own document alone, which then has a [CLS], and positions, "
        "of its own. Pairs of segments are read as they are",
    )


class Pretrain(OnText):
    """Train the teacher itself on plain text, before its fine-tuning: from random weights, or on from a checkpoint."""

    losses: Annotated[tuple[TextLossSpec, ...], Field(min_length=1)] = (MaskedTokens(),)
    epochs: PositiveNumber = Field(default=1.0, description="passes over the text")
    batch_size: Positive = Field(default=256, description="sequences per optimizer step")
    learning_rate: PositiveNumber = Field(default=1e-4, description="peak")
    dropout: Fraction | None = Field(default=0.0, description="of hidden states and attention; null: the model's own")
    held_out: Fraction = Field(
        default=0.01,
        description="share of the sequences that is not trained on, but for the perplexity that is reported",
    )
    start: Literal["random", "cooccurrence"] = Field(
        default="random",
        exclude_if=lambda value: value == "random",  # what is dumped decides the store's keys
        description="what random weights of a BERT or RoBERTa begin as: as they are drawn; or with words, neighbours and frequencies "
        "counted in the text, which spares the first millions of tokens. Weights of a checkpoint, or grown, stay what they are",
    )
    enabled: Literal["auto"] | bool = Field(default="auto", exclude=True, description="auto: when --corpus is given")
    max_tokens: Positive | None = Field(default=None, description="tokens of the text that are read; default: all")

    @model_validator(mode="after")
    def _losses_go_together(self) -> Pretrain:
        _check_named_once(self.losses)
        _check_pairs(self.losses)
        return self


def _check_named_once(losses: tuple[Any, ...]) -> None:
    names = [loss.name for loss in losses]
    if len(set(names)) != len(names):
        raise ValueError(f"losses: each at most once, found {names}")
    if not any(loss.weight > 0 for loss in losses):
        raise ValueError("losses: at least one needs a weight above 0")


def _check_pairs(losses: tuple[Any, ...]) -> None:
    if len(found := [loss.name for loss in losses if loss.name in OF_PAIRS and loss.weight > 0]) > 1:
        raise ValueError(f"losses: {' and '.join(found)} read pairs of different kinds; choose one of them")


class Losses(Spec):
    """What a student learns from its teacher."""

    losses: Annotated[tuple[LossSpec, ...], Field(min_length=1)] = (HardLabel(),)
    layer_map: LayerMap | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="which teacher layer each student layer learns from; default: uniform",
    )

    @model_validator(mode="after")
    def _losses_make_sense(self) -> Losses:
        _check_named_once(self.losses)
        return self


class Finetune(PerTask, Training):
    """Fine-tune the teacher on the task's labels."""


class MaskedLm(OnText):
    """Make a masked language model, for the augmentation or the general stage, of a teacher that has no such head: brief
    training on plain text, tied to the table of words, which stays as it is. The teacher itself is not changed."""

    epochs: PositiveNumber = Field(default=1.0, description="passes over the text")
    learning_rate: PositiveNumber = Field(default=4e-4, description="peak")
    enabled: Literal["auto"] | bool = Field(
        default="auto", exclude=True, description="auto: when another stage needs it and --corpus is given"
    )
    max_tokens: Positive | None = Field(default=None, description="tokens of the text that are read; default: all")


class General(Losses, OnText):
    """Train the student's encoder on plain text: against the teacher before its fine-tuning, or on the text's own labels."""

    losses: Annotated[tuple[LossSpec, ...], Field(min_length=1)] = (EmbeddingMse(), HiddenMse(), AttentionMse())
    batch_size: Positive = Field(default=256, description="sequences per optimizer step")
    learning_rate: PositiveNumber = Field(default=1e-4, description="peak")
    enabled: Literal["auto"] | bool = Field(default="auto", exclude=True, description="auto: when --corpus is given")
    max_tokens: Positive | None = Field(default=None, description="tokens of the text that are read; default: all")

    @model_validator(mode="after")
    def _no_labels(self) -> General:
        if wrong := [loss.name for loss in self.losses if loss.name in OF_CLASSES]:
            raise ValueError(f"losses: plain text has no classes, which {', '.join(wrong)} compares; choose others")
        _check_pairs(self.losses)
        return self


class Augment(PerTask):
    """Copies of the training examples with words replaced, for the distill stages that follow."""

    copies: Positive = Field(default=20, description="of each example: N_a")
    replace_probability: Fraction = Field(default=0.4, description="of each word, in each copy: p_t")
    candidates: Positive = Field(default=15, description="words that a replacement is drawn from: K")
    source: Literal["auto", "masked_lm", "embedding"] = Field(
        default="auto",
        description="of the candidates for single-piece words; auto: the teacher's masked-LM head, its own or "
        "that of the masked_lm stage, and the embedding table where there is neither",
    )
    masked_lm: str | None = Field(default=None, description="a teacher card whose masked-LM head is used instead")
    glove: str | None = Field(
        default=None, description="a GloVe text file for the neighbours; default: the teacher's embedding table"
    )
    enabled: bool = Field(default=True, exclude=True)

    @property
    def idle_masked_lm(self) -> list[tuple[str, ...]]:
        """Paths of the `masked_lm` that `source: embedding` keeps every task from using.

        Not a validator: for one task of several, `source: embedding` may well stand beside the `masked_lm` of the rest.
        """
        own = {task: {"source": self.source} | fields for task, fields in self.per_task.items()}
        idle = [
            ("per_task", task, "masked_lm")
            for task, fields in own.items()
            if fields.get("masked_lm") is not None and fields["source"] == "embedding"
        ]
        everywhere = {self.source, *(fields["source"] for fields in own.values())} == {"embedding"}
        return [*idle, *([("masked_lm",)] if self.masked_lm is not None and everywhere else [])]


class Distill(PerTask, Losses, Training):
    """Train the student against the fine-tuned teacher."""

    untied: bool = Field(
        default=False,
        exclude_if=lambda value: value is False,  # what is dumped decides the store's keys
        description="an ALBERT student with a block of its own for each layer; the next stage makes them one, as their mean",
    )
    name: Name | None = Field(default=None, exclude=True, description="tells several distill stages apart")
    enabled: bool = Field(default=True, exclude=True)

    @model_validator(mode="after")
    def _labels_of_the_task(self) -> Distill:
        if wrong := [loss.name for loss in self.losses if loss.name in OF_TEXT]:
            raise ValueError(f"losses: {', '.join(wrong)} needs plain text, which only the general stage reads")
        return self


class QuantizeAware(PerTask, Losses, Training):
    """Train the last model, rounded as its int8 file will be, against itself in fp32."""

    losses: Annotated[tuple[LossSpec, ...], Field(min_length=1)] = (SoftTarget(), HiddenMse())
    epochs: PositiveNumber = Field(default=1.0, description="passes over the training split")
    learning_rate: PositiveNumber = Field(default=5e-6, description="peak")
    dropout: Fraction | None = Field(default=0.0, description="of hidden states and attention; null: the model's own")
    evaluate_every: PositiveNumber = Field(default=0.5, description="epochs between evaluations on the tuning split")
    ranges: Literal["learned", "moving_average"] = Field(
        default="learned", description="of activations, from calibrated ones on: by gradient, or by what is seen"
    )
    smooth: bool = Field(
        default=True,
        description="SmoothQuant's factors first, found on the calibration texts: what sticks out of an activation is in the weights",
    )
    range_step: PositiveNumber = Field(
        default=1e-3, description="learned: share of a range's width by which a step may move its ends at the peak"
    )
    enabled: bool = Field(default=True, exclude=True)

    @model_validator(mode="after")
    def _of_one_model(self) -> QuantizeAware:
        wrong = [loss.name for loss in self.losses if loss.name in OF_TEXT or isinstance(loss, BlockSpread)]
        if wrong:
            raise ValueError(f"losses: {', '.join(wrong)} is for other stages; choose others")
        return self


class Export(Spec):
    """torch -> one ONNX file, fp32."""

    graph: Literal["fast", "plain"] = Field(
        default="fast",
        description="fast: what a classifier needs and no more, with opset 23's Attention; plain: the exporter's",
    )
    opset: Annotated[int, Field(ge=18, le=23)] = Field(default=20, description="of the plain graph")


# In the order in which a recipe's stages may come; distill may come several times.
STAGE_SPECS: dict[str, type[Spec]] = {
    "pretrain": Pretrain,
    "finetune": Finetune,
    "masked_lm": MaskedLm,
    "general": General,
    "augment": Augment,
    "distill": Distill,
    "quantize_aware": QuantizeAware,
    "export": Export,
    "quantize": Quantize,
}
