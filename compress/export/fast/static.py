"""The graph of a static model: look up the tokens' vectors, take each text's mean or each token's window, apply one hidden
layer and the outputs; for a sentence encoder the mean is the output."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ...models.heads import HEADS, STATES
from ...sessions.outputs import VECTORS
from ...spec.kinds import KindName
from .graph import Graph, Output
from .heads import unit_length
from .parts import Linear
from .reading import read_linear, read_table

_TABLE, _SCOPE, _WINDOW = "static.word_embeddings", "static.mean", "static.window"
_END = 2**31 - 1  # of a slice: up to the last entry


def build_static_graph(model: Any, *, kind: KindName, opset: int) -> ModelProto:
    """Return the ONNX model of a static model with the head for tasks of `kind`.

    Inputs: `input_ids`, `attention_mask`. Output: `logits` [batch, output], or [batch, length, label] of a tagger; a
    sentence encoder has the same outputs as other sentence encoders.
    """
    graph, head = Graph(opset), HEADS[kind]
    build = _vectors if head.bare else _labels if head.per_token else _classes
    outputs = build(graph, model)
    inputs = [
        helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "length"])
        for each in ("input_ids", "attention_mask")
    ]
    return graph.model(inputs, outputs)


def _classes(graph: Graph, model: Any) -> dict[str, Output]:
    """Return the logits of each text's mean, or of the comparison of two means."""
    config = model.config
    means = _means(graph, _look_up(graph, model, _TABLE), _token_weights(graph, config))
    states, size = _layers(graph, model, _compare_means(graph, means) if config.texts == 2 else means)
    logits = graph.op("Squeeze", [states, graph.integers(1)], "logits")
    return {"logits": (logits, ["batch", size])}


def _labels(graph: Graph, model: Any) -> dict[str, Output]:
    """Return the logits of each token's window."""
    states = _words_alone(graph, _look_up(graph, model, _TABLE), model.config)
    logits, size = _layers(graph, model, _windows(graph, states, model.config.window))
    return {"logits": (logits, ["batch", "length", size])}


def _vectors(graph: Graph, model: Any) -> dict[str, Output]:
    """Return the sum of a text's vectors, normalised to length 1, which has the direction of their mean; and the vectors,
    for callers that do their own pooling."""
    vectors, hidden = _look_up(graph, model, "word_embeddings"), model.config.hidden_size
    summed = graph.op("MatMul", [_token_weights(graph, model.config), vectors], _SCOPE)
    pooled = unit_length(graph, graph.op("Squeeze", [summed, graph.integers(1)], _SCOPE))
    states = _words_alone(graph, vectors, model.config)
    return {STATES: (states, ["batch", "length", hidden]), VECTORS: (pooled, ["batch", hidden])}


def _look_up(graph: Graph, model: Any, name: str) -> str:
    """Each token's vector, [batch, length, hidden]."""
    return graph.op("Gather", [graph.weight(f"{name}.weight", read_table(model, name)), "input_ids"], name)


def _words_alone(graph: Graph, vectors: str, config: Any) -> str:
    """`vectors` [batch, length, hidden] with zeros for padding and special tokens."""
    words = graph.op("Unsqueeze", [_is_word(graph, config), graph.integers(2)], _SCOPE)
    return graph.op("Mul", [vectors, graph.op("Cast", [words], _SCOPE, to=TensorProto.FLOAT)], _SCOPE)


def _windows(graph: Graph, vectors: str, size: int) -> str:
    """Concatenate the vectors of `size` tokens to the left, the token, and `size` to the right:
    [batch, length, (2 · size + 1) · hidden]."""
    if size == 0:
        return vectors
    padded = graph.op("Pad", [vectors, graph.integers(0, size, 0, 0, size, 0)], _WINDOW)
    last = 2 * size
    shifted = [
        graph.op(
            "Slice",
            [padded, graph.integers(first), graph.integers(first - last or _END), graph.integers(1)],
            _WINDOW,
        )
        for first in range(last + 1)
    ]
    return graph.op("Concat", shifted, _WINDOW, axis=2)


def _layers(graph: Graph, model: Any, states: str) -> tuple[str, int]:
    """Return (logits of `states` [batch, text or token, feature], their number)."""
    layers: list[Linear] = [read_linear(model, path) for path in ("pre_classifier", "classifier")]
    states = graph.activation("relu", graph.linear(layers[0], states), layers[0].name)
    return graph.linear(layers[1], states), len(layers[1].weight)


def _is_word(graph: Graph, config: Any) -> str:
    """Whether a token is real and not special: bool [batch, length]."""
    words = np.ones(config.vocab_size, bool)
    words[list(config.special_token_ids)] = False
    known = graph.op("Gather", [graph.weight(f"{_SCOPE}.words", words), "input_ids"], _SCOPE)
    return graph.op("And", [known, graph.op("Cast", ["attention_mask"], _SCOPE, to=TensorProto.BOOL)], _SCOPE)


def _token_weights(graph: Graph, config: Any) -> str:
    """1 where a token counts for a text, else 0: float32 [batch, texts, length]."""
    real = _is_word(graph, config)
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
    """Return the means [batch, texts, hidden], 0 for a text without tokens that count."""
    summed = graph.op("MatMul", [counted, vectors], _SCOPE)
    count = graph.op("ReduceSum", [counted, graph.integers(2)], _SCOPE, keepdims=1)
    one = graph.weight(f"{_SCOPE}.one", np.array(1, np.float32))
    return graph.op("Div", [summed, graph.op("Max", [count, one], _SCOPE)], _SCOPE)


def _compare_means(graph: Graph, means: str) -> str:
    """Compare the means u and v of two texts: u, v, |u - v|, u · v, [batch, 1, 4 · hidden]."""
    first, second = (graph.op("Gather", [means, graph.integers(number)], _SCOPE, axis=1) for number in (0, 1))
    difference = graph.op("Abs", [graph.op("Sub", [first, second], _SCOPE)], _SCOPE)
    product = graph.op("Mul", [first, second], _SCOPE)
    return graph.op("Concat", [first, second, difference, product], _SCOPE, axis=2)
