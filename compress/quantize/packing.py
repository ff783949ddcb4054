"""The packed form of a graph, by the names of the padded one."""

from __future__ import annotations

from onnx import ModelProto

_SCOPE = "packing/"


def before_packing(model: ModelProto, tensor: str) -> str:
    """The tensor whose values `tensor` has in another order, or `tensor` itself: both graphs have it under that name."""
    makers = {node.output[0]: node for node in model.graph.node if node.name.startswith(_SCOPE)}
    while tensor in makers:
        tensor = makers[tensor].input[0]
    return tensor
