"""A checkpoint as a module for quantizers that work on torch programs, and its conversion back to our graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnx import ModelProto
from torch import Tensor, nn

from ..spec.kinds import KindName
from .cleaning import clean
from .tracing import PREFIX, Outputs, Traced, examples, load, quiet, shapes, side_by_side, wrap, write


@dataclass(frozen=True)
class Program:
    """`module` takes int64 [batch, length] tensors in the order of `inputs` and returns the logits, or each output of a
    model with several."""

    module: nn.Module
    opset: int
    traced: Traced

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.traced.inputs

    @property
    def examples(self) -> tuple[Tensor, ...]:
        return tuple(examples(self.traced).values())

    @property
    def shapes(self) -> tuple[dict[int, Any], ...]:
        """Shapes for `torch.export`: batch and length are dynamic."""
        return shapes(self.traced)

    def path(self, name: str) -> str:
        """Return the path in `module` of the submodule `name`, after which nodes of the graph are named."""
        return f"{PREFIX}.{name}"

    def quiet(self) -> AbstractContextManager[None]:
        """While open, neither the exporter nor a loop over its programs prints its steps."""
        return quiet()

    def logits(self, module: Callable[..., Outputs], inputs: Sequence[Tensor]) -> Tensor:
        """Return all outputs of `module`, or of a module derived from it, side by side."""
        return side_by_side(module(*inputs))

    def graph(self, module: nn.Module) -> ModelProto:
        """Export `module`, or a module derived from it, with nodes and weights named as in the plain graph."""
        model = write(self.traced, module, self.opset)
        clean(model)
        return model


def read_program(checkpoint: Path, inputs: Sequence[str], opset: int, *, kind: KindName) -> Program:
    """Load a checkpoint with eager attention in fp32. `inputs`: names of the inputs of its exported graph."""
    traced = load(Path(checkpoint), kind)
    traced = replace(traced, inputs=tuple(name for name in traced.inputs if name in inputs))
    return Program(wrap(traced), opset, traced)
