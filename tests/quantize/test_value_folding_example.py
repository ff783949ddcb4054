"""The worked example of `quantize.value_folding`, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from small_graphs import model_of

from compress.quantize.smoothing import smooth
from compress.quantize.weights import to_int8

TEXT = {"input_ids": np.array([[0, 1]]), "attention_mask": np.array([[1, 1]])}
FACTORS = {"output/MatMul": np.array([1, 10], np.float32)}


def attention() -> ModelProto:
    """Return one head of two channels, whose tokens attend to all tokens equally, since all scores are 0."""
    nodes = [
        helper.make_node("Gather", ["states", "input_ids"], ["x"], name="rows"),
        helper.make_node("MatMul", ["x", "V"], ["xv"], name="value/MatMul"),
        helper.make_node("Add", ["xv", "b"], ["values"], name="value/Add"),
        helper.make_node("Transpose", ["x"], ["keys"], name="keys", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "keys"], ["products"], name="scores/MatMul"),
        helper.make_node("Mul", ["products", "zero"], ["scores"], name="scores/Mul"),
        helper.make_node("Softmax", ["scores"], ["weights"], name="softmax", axis=-1),
        helper.make_node("MatMul", ["weights", "values"], ["context"], name="context/MatMul"),
        helper.make_node("MatMul", ["context", "O"], ["logits"], name="output/MatMul"),
    ]
    stored: dict[str, Any] = {"states": [[2], [4]], "V": [[1, 10]], "b": [0, 20], "zero": 0, "O": [[2], [1]]}
    return model_of(nodes, {name: np.array(value, np.float32) for name, value in stored.items()}, 1)


def node_of(model: ModelProto, name: str) -> NodeProto:
    return next(node for node in model.graph.node if node.name == name)


def stored(model: ModelProto, node: str) -> np.ndarray:
    """Return the tensor of the file that a node reads second."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    return numpy_helper.to_array(tensors[node_of(model, node).input[1]])


def computed(model: ModelProto, node: str) -> list[Any]:
    """Return the output of a node for the text, by ONNX's reference implementation."""
    values: Any = ReferenceEvaluator(model).run(None, TEXT, intermediate=True)
    return values[node_of(model, node).output[0]][0].tolist()


def test_the_graph_has_the_numbers_of_the_docstring() -> None:
    model = attention()
    assert computed(model, "value/Add") == [[2, 40], [4, 60]]
    assert computed(model, "context/MatMul") == [[3, 50], [3, 50]]
    assert computed(model, "output/MatMul") == [[56], [56]]


def test_the_folded_graph_has_the_numbers_of_the_docstring() -> None:
    folded = smooth(attention(), FACTORS, fold=True)
    assert stored(folded, "value/MatMul").tolist() == [[1, 1]]
    assert stored(folded, "value/Add").tolist() == [0, 2]
    assert computed(folded, "value/Add") == [[2, 4], [4, 6]]
    assert computed(folded, "context/MatMul") == [[3, 5], [3, 5]]
    assert stored(folded, "output/MatMul").tolist() == [[2], [10]]
    assert computed(folded, "output/MatMul") == [[56], [56]]


def test_the_int8_values_stay_and_their_scales_change() -> None:
    model, folded = attention(), smooth(attention(), FACTORS, fold=True)
    for graph, scales in ((model, [1, 10]), (folded, [1, 1])):
        values, scale = to_int8(stored(graph, "value/MatMul"), axis=1)
        assert values.tolist() == [[127, 127]]
        assert (scale * 127).tolist() == scales
