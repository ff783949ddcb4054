"""The layers, of which the last is computed for those tokens alone that the head reads."""

from __future__ import annotations

from .attention import Masks, attend
from .heads import GraphHead
from .padding import Tokens
from .parts import Block, Encoder
from .writing import Graph


def run_layers(graph: Graph, encoder: Encoder, states: str, masks: Masks, tokens: Tokens, head: GraphHead) -> str:
    """The last states of the tokens that `head` reads."""
    *before, last = encoder.blocks
    for number, block in enumerate(before, 1):
        attended = attend(graph, block, states, masks, tokens)
        states = _feed_forward(graph, block, attended, encoder.activation)
        if graph.marked:
            graph.mark(f"layer {number}", tokens.pad(states))
    attended = head.last_attention(graph, encoder, states, masks, tokens)
    states = _feed_forward(graph, last, attended, encoder.activation)
    if graph.marked:
        graph.mark(f"layer {len(encoder.blocks)}", tokens.pad(states) if head.every_token else states)
    return states


def _feed_forward(graph: Graph, block: Block, states: str, activation: str) -> str:
    neurons = graph.activation(activation, graph.linear(block.up, states), block.up.name)
    output = graph.linear(block.down, neurons)
    return graph.norm(block.norm, output, states)
