"""How activations and weights become int8: what a `quantize` stage may say."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from .base import NonNegative, Spec


class Quantize(Spec):
    """fp32 ONNX -> int8 ONNX."""

    method: Literal["dynamic", "static", "smoothquant", "auto", "qat", "inc-static"] = Field(
        default="smoothquant",
        description="dynamic: activations have the ranges of each run; static: ranges calibrated on training texts; "
        "smoothquant: static, the peaks of activations moved into the weights; auto: smoothquant, with products given back to "
        "fp32 until the goal is met; qat: static, with the ranges of the quantize_aware stage; inc-static: neural-compressor's "
        "static quantization and its search for fp32 products",
    )
    portable: bool = Field(default=False, description="also a static file in QDQ form, for OpenVINO and other runtimes")
    avx2: bool = Field(
        default=False,
        exclude_if=lambda value: value is False,  # a run of before it had the field keeps its name
        description="also a file with 7-bit weights, which cannot saturate: for x86 CPUs without VNNI",
    )
    calibration_examples: Annotated[int, Field(ge=32, le=512)] = Field(
        default=128, description="training texts, of all lengths alike, for the static forms"
    )
    calibration_text: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="a file whose lines are calibrated on in place of the training texts, the two texts of a pair with a "
        "tab between them; lines of a reported split are refused",
    )
    calibration: Literal["percentile", "minmax", "mse", "moving_average"] = Field(
        default="percentile",
        description="how a static form takes an activation's range from the texts; moving_average: the mean of the "
        "batches' extremes",
    )
    percentile: Annotated[float, Field(gt=99, le=100)] = Field(
        default=99.999, description="share of an activation's values within its calibrated range, for `percentile`"
    )
    alpha: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="smoothquant: how much of the peaks moves; default: searched for each layer"
    )
    split: bool = Field(
        default=True,
        exclude_if=lambda value: value is True,
        description="smoothquant, auto: repeat the few neurons of a feed-forward layer whose smoothed weights stick out, each "
        "with a part of them, where that makes the layer more exact",
    )
    bias_correction: bool = Field(
        default=False, description="static forms: add to each bias what int8 takes off its product on average"
    )
    max_drop: NonNegative = Field(
        default=0.5, description="auto, inc-static: points that may be lost on the tuning split"
    )
    max_flips: NonNegative = Field(
        default=0.2,
        description="auto: percent of the tuning split's decisions that may change; of texts on which the model is less "
        "sure than on those put aside from its training, more will",
    )
    per_channel: bool = True
    reduce_range: bool = Field(
        default=False, description="7-bit weights: for CPUs without VNNI, at some cost in accuracy"
    )
    embeddings: bool = Field(default=True, description="quantize the embedding tables of 16 rows and more too")
    exclude: tuple[str, ...] = Field(default=(), description="node names, as regular expressions, that stay fp32")

    @field_validator("exclude")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
        return patterns

    @model_validator(mode="after")
    def _two_different_files(self) -> Quantize:
        if self.avx2 and self.reduce_range:
            raise ValueError("avx2: reduce_range makes 7-bit weights of every int8 file; leave one of the two out")
        return self

    @model_validator(mode="after")
    def _eight_bits_of_inc(self) -> Quantize:
        if self.method == INC and self.reduce_range:
            raise ValueError(
                "reduce_range: neural-compressor's weights have 8 bits; leave it out, or take another method"
            )
        return self

    @property
    def precisions(self) -> tuple[str, ...]:
        """Of the files that are made, in this order: the last is the run's final model."""
        return (*(["qdq"] if self.portable else []), *(["avx2"] if self.avx2 else []), "int8")

    def layout(self, precision: str) -> str:
        """Of the file of a precision, `int8`, `avx2` or `qdq`."""
        if precision == "qdq" or (precision == "int8" and self.method == INC):
            return "qdq"
        return "dynamic" if self.method == "dynamic" else "static"

    def calibrates(self, layout: str) -> bool:
        """Whether the ranges of a file of a layout come from texts."""
        return layout in CALIBRATED and self.method != "qat"

    def form(self, precision: str) -> Quantize:
        """The settings of the file of a precision. A search is for `int8` alone.

        Why `avx2` has 7-bit weights and not unsigned ones: both are free of saturation (2 × 255 × 63 fits into 16 bits;
        ONNX Runtime multiplies U8 by U8 in 16-bit halves, exactly), and 7-bit ones are S8 like those of the
        `int8` file, where a product of U8 by U8 is no faster than fp32 on a CPU with VNNI (docs/bundle.md has the figures).
        """
        update: dict[str, Any] = {"reduce_range": True} if precision == "avx2" else {}
        if self.method == "auto" and precision != "int8":
            update["method"] = "smoothquant"
        if self.method == INC and precision != "int8":
            update["method"] = "static"
        return self.model_copy(update=update)

    @property
    def weights(self) -> dict[str, Any]:
        """How a stored weight [in, out] becomes int8: the axis that has scales of its own, and the bits."""
        return {"axis": 1 if self.per_channel else None, "bits": 7 if self.reduce_range else 8}

    def described(self, layout: str) -> dict[str, Any]:
        """What a file of a layout depends on, and no more; of the text that it is calibrated on, keys hold the content."""
        told = self.model_dump(mode="json", exclude={"portable", "avx2", "calibration_text", *self.idle(layout)})
        return {**told, "layout": layout}

    def idle(self, layout: str) -> set[str]:
        """Fields that a file of a layout does not depend on."""
        if self.method == INC:
            return {"max_flips", "alpha", "split", "calibration", "percentile", "bias_correction", "reduce_range"}
        idle = set() if self.method == "auto" else {"max_drop", "max_flips"}
        if layout == "dynamic":
            return idle | {"method", *_OF_CALIBRATION}
        if self.method == "qat":
            return idle | _OF_CALIBRATION
        # Beside `dynamic`, `portable` is static.
        idle |= set() if self.method in SMOOTHED else {"method", "alpha", "split"}
        return idle | (set() if self.calibration == "percentile" else {"percentile"})


INC = "inc-static"  # quantizes the checkpoint, not its ONNX file
SEARCHED = ("auto", INC)  # methods that look for products to leave in fp32
SMOOTHED = ("smoothquant", "auto")  # methods that move the peaks of activations into the weights
_OF_CALIBRATION = {"calibration_examples", "calibration", "percentile", "alpha", "split", "bias_correction"}
CALIBRATED = ("static", "qdq")  # layouts with ranges that are known before a run
