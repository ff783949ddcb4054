"""The spec of `export`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ..stage import StageSpec


class Export(StageSpec):
    """Write the model as one fp32 ONNX file."""

    graph: Literal["auto", "fast", "plain"] = Field(
        default="auto",
        description="fast: written directly from the weights, with only what inference needs; plain: from torch's exporter; auto: fast "
        "if the model's family and activation support it, else plain, with a note in the plan",
    )
    opset: Annotated[int, Field(ge=18, le=23)] = Field(
        default=20,
        description="20: for ONNX Runtime 1.17 and later; 23: attention as a single operator, for ONNX Runtime 1.24 and later; the fast "
        "graph needs 20 or more",
    )

    @model_validator(mode="after")
    def _has_operators(self) -> Self:
        if self.graph != "plain" and self.opset < 20:
            raise ValueError(f"opset: the fast graph needs 20 or more, found {self.opset}; or export with graph: plain")
        return self
