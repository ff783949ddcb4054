"""The layers, of which the last is computed for the first token alone: the head reads no other."""

from __future__ import annotations

from .attention import Masks, attend, attend_first
from .packing import Tokens
from .parts import Block, Encoder
from .writing import Graph


def run_layers(graph: Graph, encoder: Encoder, states: str, masks: Masks, tokens: Tokens) -> str:
    """The first token's last state, [batch, 1, hidden]."""
    *before, last = encoder.blocks
    for number, block in enumerate(before, 1):
        attended = attend(graph, block, states, masks, tokens, encoder.heads)
        states = _feed_forward(graph, block, attended, encoder.activation)
        if graph.marked:
            graph.mark(f"layer {number}", tokens.spread(states))
    states = tokens.spread(states)
    first = graph.op("Gather", [states, graph.integers(0)], "first_token", axis=1)
    attended = attend_first(graph, last, states, first, masks, encoder.heads)
    states = _feed_forward(graph, last, attended, encoder.activation)
    graph.mark(f"layer {len(encoder.blocks)}", states)
    return states


def _feed_forward(graph: Graph, block: Block, states: str, activation: str) -> str:
    neurons = graph.activation(activation, graph.linear(block.up, states), block.up.name)
    output = graph.linear(block.down, neurons)
    return graph.norm(block.norm, output, states)
