"""How the fast graph ends: the last layer, and the head on it. One line for each kind of task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...spec.kinds import KindName
from .attention import Masks, attend_first
from .padding import Tokens
from .parts import Encoder
from .writing import Graph


@dataclass(frozen=True)
class GraphHead:
    """`last_attention` attends in the last block, from its states [batch, length, hidden] to those that the head reads.
    `logits` are [batch, output], of the last block's states."""

    last_attention: Callable[[Graph, Encoder, str, Masks, Tokens], str]
    logits: Callable[[Graph, Encoder, str], str]


def _attend_first(graph: Graph, encoder: Encoder, states: str, masks: Masks, tokens: Tokens) -> str:
    """For the first token alone, [batch, 1, hidden]: the head reads no other."""
    states = tokens.pad(states)
    first = graph.op("Gather", [states, graph.integers(0)], "first_token", axis=1)
    return attend_first(graph, encoder.blocks[-1], states, first, masks, encoder.heads)


def _classify(graph: Graph, encoder: Encoder, first: str) -> str:
    """From the first token's state [batch, 1, hidden]."""
    for part, activation in encoder.head:
        first = graph.linear(part, first)
        first = first if activation is None else graph.activation(activation, first, part.name)
    return graph.op("Squeeze", [first, graph.integers(1)], "logits")


_FIRST_TOKEN = GraphHead(_attend_first, _classify)
GRAPH_HEADS: dict[KindName, GraphHead] = {
    "classification": _FIRST_TOKEN,
    "multilabel": _FIRST_TOKEN,
    "regression": _FIRST_TOKEN,
}
