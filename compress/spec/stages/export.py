"""The spec of `export`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..stage import StageSpec


class Export(StageSpec):
    """Write the model as one fp32 ONNX file."""

    graph: Literal["fast", "plain"] = Field(
        default="fast",
        description="fast: written from the weights, with only what a classifier needs, in opset 23; plain: torch's exporter's",
    )
    opset: Annotated[int, Field(ge=18, le=23)] = Field(default=20, description="of the plain graph")
