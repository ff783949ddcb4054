"""A checkpoint as a module for quantizers that work on torch's programs, and the way back to a graph of ours."""

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
    """`module` takes int64 [batch, length] tensors in the order of `inputs` and gives the logits; a model with several
    outputs each of them."""

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
        """Of `torch.export`: batch and length are dynamic."""
        return shapes(self.traced)

    def path(self, name: str) -> str:
        """Of the submodule that a node of the graph is called after."""
        return f"{PREFIX}.{name}"

    def quiet(self) -> AbstractContextManager[None]:
        """While open, neither the exporter nor a loop over its programs tells the terminal of its steps."""
        return quiet()

    def logits(self, module: Callable[..., Outputs], inputs: Sequence[Tensor]) -> Tensor:
        """Of `module`, or of what was made of it, all outputs side by side."""
        return side_by_side(module(*inputs))

    def graph(self, module: nn.Module) -> ModelProto:
        """ONNX of `module`, or of what was made of it, its nodes and weights named as in the plain graph."""
        model = write(self.traced, module, self.opset)
        clean(model)
        return model


def read_program(checkpoint: Path, inputs: Sequence[str], opset: int, *, kind: KindName) -> Program:
    """Eager attention, fp32. `inputs`: the names of those that an exported graph of it has."""
    traced = load(Path(checkpoint), kind)
    traced = replace(traced, inputs=tuple(name for name in traced.inputs if name in inputs))
    return Program(wrap(traced), opset, traced)
