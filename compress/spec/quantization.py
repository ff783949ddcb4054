"""How activations and weights become int8: the fields of a `quantize` stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

from ..fields import NonNegative
from .stage import StageSpec


class Quantize(StageSpec):
    """Quantize the fp32 ONNX file to int8."""

    files: ClassVar[Mapping[str, str]] = {"calibration_text": "text"}

    method: str = Field(
        default="smoothquant", description="how activations are quantized to int8: one of the methods below"
    )
    portable: bool = Field(
        default=False,
        description="also write a static file with portable QDQ operators, for OpenVINO and other runtimes",
    )
    avx2: bool = Field(
        default=False,
        exclude_if=lambda value: value is False,  # keeps the run names of recipes without the field
        description="also write a file with 7-bit weights, which cannot saturate, for x86 CPUs without VNNI",
    )
    calibration_examples: Annotated[int, Field(ge=32, le=512)] = Field(
        default=128, description="training texts to calibrate activation ranges on, spread over all lengths"
    )
    calibration_text: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="calibrate on the lines of this file instead, with a tab between the texts of a pair; lines of a reported "
        "split are refused",
    )
    calibration: Literal["percentile", "minmax"] = Field(
        default="percentile",
        description="how to compute an activation's range from the texts: from a `percentile` of its values, or their minimum and maximum",
    )
    percentile: Annotated[float, Field(gt=99, le=100)] = Field(
        default=99.999, description="for `calibration: percentile`: percent of an activation's values within its range"
    )
    alpha: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="smoothquant, auto: share of the activation peaks moved into the weights; default: searched for each matmul input",
    )
    outlier_splitting: bool = Field(
        default=True,
        exclude_if=lambda value: value is True,
        description="smoothquant, auto: split the few outlier channels of a feed-forward layer into copies, each with part of the weight, "
        "where that lowers the layer's error",
    )
    bias_correction: bool = Field(
        default=False, description="with calibrated ranges: correct each bias for the mean int8 error of its matmul"
    )
    max_drop: NonNegative = Field(
        default=0.5, description="auto, inc-static: largest allowed drop of the tuning score, in points"
    )
    max_flips: NonNegative = Field(
        default=0.2,
        description="auto: largest allowed share of changed decisions, in percent, counted on the tuning split, topped up with "
        "training texts to 1,000 texts, or more for a low limit",
    )
    per_channel: bool = Field(
        default=True, description="one scale per output channel of a weight matrix; false: one per matrix"
    )
    reduce_range: bool = Field(
        default=False, description="7-bit weights in every int8 file, for CPUs without VNNI; costs some accuracy"
    )
    embeddings: bool = Field(default=True, description="also quantize embedding tables of 16 rows or more")
    word_bits: Literal[4, 8] = Field(
        default=8,
        exclude_if=lambda value: value == 8,
        description="bits per value of the word embeddings; 4, for tables of 1,024 rows or more: half the bytes, with one scale per block "
        "of up to 32 values",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="nodes to keep in fp32: regular expressions that match their names"
    )

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
    def _has_words(self) -> Quantize:
        if self.word_bits == 4 and not self.embeddings:
            raise ValueError(
                "word_bits: `embeddings: false` leaves the word embeddings in fp32; leave one of the two out"
            )
        return self

    @field_validator("method")
    @classmethod
    def _is_known(cls, method: str, info: ValidationInfo) -> str:
        known = methods_in(info)
        if known and method not in known:
            raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, known))})
        return method

    @model_validator(mode="after")
    def _is_possible(self, info: ValidationInfo) -> Quantize:
        method = methods_in(info).get(self.method)
        if method is not None and (problem := method.problem(self)):
            raise ValueError(problem)
        return self

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions of the files that are made, in this order: the last is the run's final model."""
        return (*(["qdq"] if self.portable else []), *(["avx2"] if self.avx2 else []), "int8")

    @property
    def weights(self) -> dict[str, Any]:
        """How a stored weight [in, out] becomes int8: the axis with scales of its own, and the bits."""
        return {"axis": 1 if self.per_channel else None, "bits": 7 if self.reduce_range else 8}


class Method(Protocol):
    """What a recipe needs to know of a quantization method. The methods themselves are in a layer above specs: the loader of a recipe
    passes them in."""

    @property
    def problem(self) -> Callable[[Quantize], str | None]: ...


def methods_in(info: ValidationInfo) -> Mapping[str, Method]:
    """Return the methods that the loader passed; empty for a spec made without one, which planning checks instead."""
    return (info.context or {}).get("methods", {})
