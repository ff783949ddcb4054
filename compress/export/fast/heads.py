"""The end of the fast graph: the last layer's attention, and the head. One line for each kind of task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...spec.kinds import KindName
from .attention import Masks, attend, attend_first
from .graph import Graph
from .padding import Tokens
from .parts import Encoder


@dataclass(frozen=True)
class GraphHead:
    """The end of a graph.

    `last_attention` applies the last block's attention and returns the states that the head reads: of every token, in the
    layout of `tokens`, if `every_token`; else of the first, [batch, 1, hidden]. `logits` maps the last block's states to
    [batch, length, output] if `per_token`, else to [batch, output]. With `vectors` it gets these states as
    [batch, length, hidden], or the first token's.
    """

    last_attention: Callable[[Graph, Encoder, str, Masks, Tokens], str]
    logits: Callable[[Graph, Encoder, str, Tokens], str]
    per_token: bool = False
    every_token: bool = False
    vectors: bool = False


def _attend_first(graph: Graph, encoder: Encoder, states: str, masks: Masks, tokens: Tokens) -> str:
    """Attend for the first token alone, [batch, 1, hidden]: the head reads no other."""
    states = tokens.pad(states)
    return attend_first(graph, encoder.blocks[-1], states, _first_token(graph, states), masks)


def first_token(graph: Graph, states: str, tokens: Tokens) -> str:
    """The states of the first token of each text, [batch, 1, hidden]."""
    return _first_token(graph, tokens.pad(states))


def _first_token(graph: Graph, states: str) -> str:
    return graph.op("Gather", [states, graph.integers(0)], "first_token", axis=1)


def _classify(graph: Graph, encoder: Encoder, first: str, tokens: Tokens) -> str:
    """Return the logits of the first token's state [batch, 1, hidden]."""
    return graph.op("Squeeze", [_head(graph, encoder, first), graph.integers(1)], "logits")


def _head(graph: Graph, encoder: Encoder, states: str) -> str:
    for part, activation in encoder.head:
        states = graph.linear(part, states)
        states = states if activation is None else graph.activation(activation, states, part.name)
    return states


def _attend_all(graph: Graph, encoder: Encoder, states: str, masks: Masks, tokens: Tokens) -> str:
    return attend(graph, encoder.blocks[-1], states, masks, tokens)


def _classify_all(graph: Graph, encoder: Encoder, states: str, tokens: Tokens) -> str:
    """Return the logits of every token, padded at the very end: a row of labels is narrower than a state."""
    return tokens.pad(_head(graph, encoder, states))


def _first_vector(graph: Graph, encoder: Encoder, first: str, tokens: Tokens) -> str:
    """Return the first token's state, normalised to length 1."""
    return unit_length(graph, graph.op("Squeeze", [first, graph.integers(1)], _VECTOR))


def _mean_vector(graph: Graph, encoder: Encoder, states: str, tokens: Tokens) -> str:
    """Return the sum of the real tokens' states, normalised to length 1: the divisor of their mean would cancel."""
    real = graph.op("Cast", ["attention_mask"], _VECTOR, to=1)
    real = graph.op("Unsqueeze", [real, graph.integers(2)], _VECTOR)
    summed = graph.op("Mul", [states, real], _VECTOR)
    return unit_length(graph, graph.op("ReduceSum", [summed, graph.integers(1)], _VECTOR, keepdims=0))


def unit_length(graph: Graph, vectors: str) -> str:
    """Normalise vectors [batch, hidden] to length 1."""
    length = graph.op("ReduceL2", [vectors, graph.integers(1)], _VECTOR, keepdims=1)
    least = graph.weight("float:least_length", np.array(_LEAST_LENGTH, np.float32))
    return graph.op("Div", [vectors, graph.op("Max", [length, least], _VECTOR)], _VECTOR)


_VECTOR, _LEAST_LENGTH = "vector", 1e-12  # as in torch's `normalize`
_FIRST_TOKEN = GraphHead(_attend_first, _classify)
_EVERY_TOKEN = GraphHead(_attend_all, _classify_all, per_token=True, every_token=True)
_FIRST_VECTOR = GraphHead(_attend_first, _first_vector, vectors=True)
_MEAN_VECTOR = GraphHead(_attend_all, _mean_vector, every_token=True, vectors=True)
GRAPH_HEADS: dict[KindName, GraphHead] = {
    "classification": _FIRST_TOKEN,
    "multilabel": _FIRST_TOKEN,
    "tagging": _EVERY_TOKEN,
    "span": _EVERY_TOKEN,
    "ranking": _FIRST_TOKEN,
    "choice": _FIRST_TOKEN,
    "regression": _FIRST_TOKEN,
    "embedding": _MEAN_VECTOR,
}


def graph_head(kind: KindName, pooling: str) -> GraphHead:
    """Return the head for tasks of `kind`; for vectors it depends on `pooling`."""
    head = GRAPH_HEADS[kind]
    return _FIRST_VECTOR if head.vectors and pooling == "cls" else head
