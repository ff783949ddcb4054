"""An ONNX graph under construction: nodes in order, every weight once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from .parts import Linear, Norm

Output = tuple[str, list[str | int]]  # tensor, and shape
OPSET = 20  # the first with Gelu, and the newest of ONNX Runtime 1.17
_ATTENTION = 23  # the first with Attention
ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {  # those of `models.fast_graph`
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
}


class Graph:
    """Tensors are identified by name. A node is named after its module: `bert.pooler.dense/MatMul`. Its output has a short
    name, `t12`: long names, repeated at every reader and in what quantization derives from them, would be 1% of a small
    model's int8 file."""

    def __init__(self, opset: int = OPSET, *, marked: bool = False) -> None:
        self.marked, self._opset = marked, opset
        self._nodes: list[NodeProto] = []
        self._weights: dict[str, np.ndarray] = {}
        self._used: Counter[str] = Counter()
        self._marks: dict[str, str] = {}

    @property
    def has_attention(self) -> bool:
        """Whether attention is one operator."""
        return self._opset >= _ATTENTION

    def mark(self, name: str, states: str) -> None:
        """Output states [batch, length, hidden] under the name of the part that computes them, in a `marked` graph."""
        self._marks[name] = states

    def op(self, kind: str, inputs: list[str], scope: str, **attributes: Any) -> str:
        """Append a node with one output, and return that output's name. A repeated scope is numbered."""
        stem = f"{scope}/{kind}"
        name = f"{stem}_{self._used[stem]}" if self._used[stem] else stem
        self._used[stem] += 1
        output = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def weight(self, name: str, value: np.ndarray) -> str:
        """Add a constant, unless one of that name exists, and return the name."""
        self._weights.setdefault(name, np.asarray(value, order="C"))
        return name

    def integers(self, *values: int) -> str:
        return self.weight(f"int64:{'_'.join(map(str, values))}", np.array(values, np.int64))

    def integer(self, value: int) -> str:
        """Add a scalar constant, and return its name."""
        return self.weight(f"int64:scalar_{value}", np.array(value, np.int64))

    def linear(self, part: Linear, states: str, *, scale: float = 1.0) -> str:
        """Compute `states` [batch, length, in] · weightᵀ + bias, both times `scale`. States always have three axes: two
        would become a Gemm."""
        weight = self.weight(f"{part.name}.weight", (part.weight * np.float32(scale)).T)
        return self.biased(part, self.op("MatMul", [states, weight], part.name), scale=scale)

    def biased(self, part: Linear, product: str, *, scale: float = 1.0) -> str:
        if part.bias is None:
            return product
        return self.op("Add", [product, self.weight(f"{part.name}.bias", part.bias * np.float32(scale))], part.name)

    def stacked(self, part: Linear, shape: tuple[int, ...], order: tuple[int, ...]) -> str:
        """Return the weight [in, out] reshaped to `shape` with its axes in `order`. A runtime does so once, when it loads
        the file, which stores the weight in the layout of its other readers."""
        weight = self.weight(f"{part.name}.weight", part.weight.T)
        cut = self.op("Reshape", [weight, self.integers(*shape)], part.name)
        return self.op("Transpose", [cut], part.name, perm=list(order))

    def norm(self, part: Norm, *states: str) -> str:
        """Normalise the sum of `states`. The node is a Sum: ONNX Runtime would fuse an Add with the norm into a slower kernel."""
        total = states[0] if len(states) == 1 else self.op("Sum", list(states), part.name)
        gain, bias = self.weight(f"{part.name}.weight", part.gain), self.weight(f"{part.name}.bias", part.bias)
        return self.op("LayerNormalization", [total, gain, bias], part.name, axis=-1, epsilon=part.epsilon)

    def norm_biased(self, part: Norm, before: Linear, states: str) -> str:
        """Normalise the sum of `states` and the bias of `before`, the matrix before the norm, which has no inputs."""
        return self.norm(
            part, states, *([] if before.bias is None else [self.weight(f"{before.name}.bias", before.bias)])
        )

    def activation(self, name: str, states: str, scope: str) -> str:
        kind, attributes = ACTIVATIONS[name]
        return self.op(kind, [states], scope, **attributes)

    def model(self, inputs: list[ValueInfoProto], outputs: Mapping[str, Output]) -> ModelProto:
        """Build the model. `outputs`: name -> float32 tensor and its shape; marked states follow as further outputs."""
        marks = {name: (tensor, ["batch", None, None]) for name, tensor in self._marks.items()} if self.marked else {}
        named: dict[str, Any] = {**outputs, **marks}
        nodes = [
            helper.make_node("Identity", [tensor], [name], name=f"{name}/Identity")
            for name, (tensor, _) in named.items()
        ]
        weights = [numpy_helper.from_array(value, name) for name, value in self._weights.items()]
        value_infos = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, (_, shape) in named.items()
        ]
        graph = helper.make_graph([*self._nodes, *nodes], "classifier", inputs, value_infos, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)])
