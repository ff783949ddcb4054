"""The layers, of which the last is computed for those tokens alone that the head reads."""

from __future__ import annotations

import numpy as np

from .attention import Masks, attend
from .heads import GraphHead, first_token
from .padding import Tokens
from .parts import Block, Encoder
from .writing import Graph


def run_layers(
    graph: Graph, encoder: Encoder, states: str, masks: Masks, tokens: Tokens, head: GraphHead, *, averaged: int = 1
) -> str:
    """The last states of the tokens that `head` reads; the mean of those of the last `averaged` layers."""
    *before, last = encoder.blocks
    several: list[str] = []
    for number, block in enumerate(before, 1):
        attended = attend(graph, block, states, masks, tokens)
        states = _feed_forward(graph, block, attended, encoder.activation)
        if graph.marked:
            graph.mark(f"layer {number}", tokens.pad(states))
        if number > len(encoder.blocks) - averaged:
            several.append(states if head.every_token else first_token(graph, states, tokens))
    attended = head.last_attention(graph, encoder, states, masks, tokens)
    states = _feed_forward(graph, last, attended, encoder.activation)
    if graph.marked:
        graph.mark(f"layer {len(encoder.blocks)}", tokens.pad(states) if head.every_token else states)
    return _mean(graph, [states, *reversed(several)])


def _mean(graph: Graph, states: list[str]) -> str:
    """Of the states of several layers; of one layer's, those."""
    found, *others = states
    for other in others:
        found = graph.op("Add", [found, other], "layers")
    share = np.array(1 / len(states), np.float32)
    return graph.op("Mul", [found, graph.weight("float:share_of_layers", share)], "layers") if others else found


def _feed_forward(graph: Graph, block: Block, states: str, activation: str) -> str:
    neurons = graph.activation(activation, graph.linear(block.up, states), block.up.name)
    output = graph.linear(block.down, neurons)
    return graph.norm(block.norm, output, states)
