"""The whole graph, from embeddings to logits."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, TensorProto, helper

from ...models.families import FAMILIES
from ...models.heads import HEADS, STATES
from ...models.sentence_encoders.pooling import pooling_of
from ...models.sentence_encoders.vector_layers import layer_weights
from ...spec.kinds import KindName
from .attention import make_masks
from .embeddings import embed
from .graph import OPSET, Graph, Output
from .heads import graph_head
from .layers import run_layers
from .padding import Padded, Unpadded
from .reading import read_encoder
from .static import build_static_graph


def has_layers(model: Any) -> bool:
    """Whether the model has layers, in which padding can be skipped."""
    family = FAMILIES.get(model.config.model_type)
    return family is None or not family.layerless


def build_fast(
    model: Any,
    *,
    kind: KindName = "classification",
    pairs: bool = True,
    opset: int = OPSET,
    unpadded: bool = False,
    marked: bool = False,
) -> ModelProto | None:
    """Return the ONNX model of a transformers model for tasks of `kind`; None if its form is not known here, or for the
    unpadded graph of a model without layers.

    Inputs and outputs are those of the plain export, except that an `unpadded` graph of vectors outputs only these, and that
    there is no input `token_type_ids` without `pairs`, when texts are all of one segment. `opset`: 20 to 23. `unpadded`: see
    `Unpadded`. `marked`: also output the states after each part, under the part's name.
    """
    if not has_layers(model):
        return None if unpadded else build_static_graph(model, kind=kind, opset=opset)
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
    masks, weights = make_masks(graph, encoder.relative), layer_weights(model.config) if head.vectors else [1.0]
    states = run_layers(graph, encoder, states, masks, tokens, head, weights)
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
    shape = [*axes, len(encoder.head[-1][0].weight) if encoder.head else hidden]
    return graph.model(inputs, outputs | _outputs(graph, HEADS[kind].outputs, logits, shape))


def _outputs(graph: Graph, names: tuple[str, ...], logits: str, shape: list[str | int]) -> dict[str, Output]:
    """Map each output's name to its tensor and shape; each of several outputs is a column of the logits
    [batch, length, output]."""
    if len(names) == 1:
        return {names[0]: (logits, shape)}
    columns = [graph.op("Gather", [logits, graph.integer(index)], name, axis=2) for index, name in enumerate(names)]
    return {name: (column, shape[:-1]) for name, column in zip(names, columns, strict=True)}
