"""The whole graph, from embeddings to logits."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, TensorProto, helper

from ...models.heads import HEADS, STATES
from ...models.sentence_pooling import pooling_of
from ...spec.kinds import KindName
from .attention import make_masks
from .embeddings import embed
from .heads import graph_head
from .layers import run_layers
from .padding import Padded, Unpadded
from .reading import read_encoder
from .writing import OPSET, Graph, Output


def build_fast(
    model: Any,
    *,
    kind: KindName = "classification",
    pairs: bool = True,
    opset: int = OPSET,
    unpadded: bool = False,
    marked: bool = False,
) -> ModelProto | None:
    """The ONNX model of a transformers model for tasks of `kind`; None where its form is not known here.

    Inputs and outputs are those of the plain export, but for an `unpadded` graph of vectors, which gives these alone; without `pairs`,
    of texts that are all of one segment, there is no
    input `token_type_ids`. `opset`: 20 to 23. `unpadded`: see `Unpadded`. `marked`: the states after each part are outputs too, under the
    part's name.
    """
    encoder = read_encoder(model)
    if encoder is None:
        return None
    encoder = encoder if pairs else encoder.of_one_segment()
    graph = Graph(opset, marked=marked)
    tokens = Unpadded(graph) if unpadded else Padded(graph)
    states = tokens.unpad(embed(graph, encoder, tokens))
    if marked:
        graph.mark("embeddings", tokens.pad(states))
    head = graph_head(kind, pooling_of(model))
    states = run_layers(graph, encoder, states, make_masks(graph, encoder.relative), tokens, head)
    if head.vectors and head.every_token:
        states = tokens.pad(states)
    logits = head.logits(graph, encoder, states, tokens)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if encoder.types is not None else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    axes: list[str | int] = ["batch", "length"] if head.per_token else ["batch"]
    hidden = len(encoder.blocks[-1].down.weight)
    outputs: dict[str, Output] = {}
    if head.vectors and not unpadded and not marked:
        outputs[STATES] = states, ["batch", "length" if head.every_token else 1, hidden]
    outputs[HEADS[kind].output] = logits, [*axes, len(encoder.head[-1][0].weight) if encoder.head else hidden]
    return graph.model(inputs, outputs)
