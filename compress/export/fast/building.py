"""The whole graph, from embeddings to logits."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, TensorProto, helper

from .attention import make_masks
from .embeddings import embed
from .layers import run_layers
from .packing import Packed, Padded
from .parts import Encoder
from .reading import read_encoder
from .writing import Graph


def build_fast(model: Any, *, pairs: bool = True, packed: bool = False, marked: bool = False) -> ModelProto | None:
    """The ONNX model of a transformers sequence classifier, opset 23; None where its form is not known here.

    Inputs and output are those of the plain export; without `pairs`, of texts that are all of one segment, there is no
    input `token_type_ids`. `packed`: see `Packed`. `marked`: the states after each part are outputs too, under the
    part's name.
    """
    encoder = read_encoder(model)
    if encoder is None:
        return None
    encoder = encoder if pairs else encoder.of_one_segment()
    graph = Graph(marked)
    tokens = Packed(graph) if packed else Padded()
    states = embed(graph, encoder)
    graph.mark("embeddings", states)
    states = run_layers(graph, encoder, tokens.pack(states), make_masks(graph), tokens)
    logits = _classify(graph, encoder, states)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if encoder.types is not None else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    return graph.model(inputs, logits, len(encoder.head[-1][0].weight))


def _classify(graph: Graph, encoder: Encoder, first: str) -> str:
    """Logits [batch, class] from the first token's state [batch, 1, hidden]."""
    for part, activation in encoder.head:
        first = graph.linear(part, first)
        first = first if activation is None else graph.activation(activation, first, part.name)
    return graph.op("Squeeze", [first, graph.integers(1)], "logits")
