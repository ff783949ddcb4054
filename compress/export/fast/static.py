"""The graph of a static model: look up the tokens' vectors, take each text's mean, one hidden layer, the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from .parts import Linear
from .reading import read_linear, read_table
from .writing import Graph

_SCOPE = "static.mean"


def build_static_graph(model: Any, *, opset: int) -> ModelProto:
    """The ONNX model of a `StaticForSequenceClassification`. Inputs: `input_ids`, `attention_mask`; output: `logits` [batch, output]."""
    graph, config = Graph(opset), model.config
    name = "static.word_embeddings"
    table = graph.weight(f"{name}.weight", read_table(model, name))
    vectors = graph.op("Gather", [table, "input_ids"], name)
    means = _means(graph, vectors, _counted(graph, config))
    states = _compared(graph, means) if config.texts == 2 else means
    layers: list[Linear] = [read_linear(model, path) for path in ("pre_classifier", "classifier")]
    states = graph.activation("relu", graph.linear(layers[0], states), layers[0].name)
    logits = graph.op("Squeeze", [graph.linear(layers[1], states), graph.integers(1)], "logits")
    inputs = [
        helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "length"])
        for each in ("input_ids", "attention_mask")
    ]
    return graph.model(inputs, {"logits": (logits, ["batch", len(layers[1].weight)])})


def _counted(graph: Graph, config: Any) -> str:
    """1 where a token counts for a text, else 0: float32 [batch, texts, length]."""
    words = np.ones(config.vocab_size, bool)
    words[list(config.special_token_ids)] = False
    known = graph.op("Gather", [graph.weight(f"{_SCOPE}.words", words), "input_ids"], _SCOPE)
    real = graph.op("And", [known, graph.op("Cast", ["attention_mask"], _SCOPE, to=TensorProto.BOOL)], _SCOPE)
    if config.texts == 1:
        texts = graph.op("Unsqueeze", [real, graph.integers(1)], _SCOPE)
        return graph.op("Cast", [texts], _SCOPE, to=TensorProto.FLOAT)
    ends = graph.op("Equal", ["input_ids", graph.integer(config.separator_token_id)], _SCOPE)
    passed = graph.op("CumSum", [graph.op("Cast", [ends], _SCOPE, to=TensorProto.INT64), graph.integer(1)], _SCOPE)
    second = graph.op("Cast", [passed], _SCOPE, to=TensorProto.BOOL)
    parts = [graph.op("Not", [second], _SCOPE), second]
    kept = [graph.op("Unsqueeze", [graph.op("And", [real, part], _SCOPE), graph.integers(1)], _SCOPE) for part in parts]
    return graph.op("Cast", [graph.op("Concat", kept, _SCOPE, axis=1)], _SCOPE, to=TensorProto.FLOAT)


def _means(graph: Graph, vectors: str, counted: str) -> str:
    """[batch, texts, hidden], 0 for a text without tokens that count."""
    summed = graph.op("MatMul", [counted, vectors], _SCOPE)
    count = graph.op("ReduceSum", [counted, graph.integers(2)], _SCOPE, keepdims=1)
    one = graph.weight(f"{_SCOPE}.one", np.array(1, np.float32))
    return graph.op("Div", [summed, graph.op("Max", [count, one], _SCOPE)], _SCOPE)


def _compared(graph: Graph, means: str) -> str:
    """u, v, |u - v|, u · v: [batch, 1, 4 · hidden]."""
    first, second = (graph.op("Gather", [means, graph.integers(number)], _SCOPE, axis=1) for number in (0, 1))
    apart = graph.op("Abs", [graph.op("Sub", [first, second], _SCOPE)], _SCOPE)
    product = graph.op("Mul", [first, second], _SCOPE)
    return graph.op("Concat", [first, second, apart, product], _SCOPE, axis=2)
