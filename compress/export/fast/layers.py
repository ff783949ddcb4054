"""The layers; the last one is computed only for the tokens that the head reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .attention import Masks, attend
from .graph import Graph
from .heads import GraphHead, first_token
from .padding import Tokens
from .parts import Block, Encoder


def run_layers(
    graph: Graph,
    encoder: Encoder,
    states: str,
    masks: Masks,
    tokens: Tokens,
    head: GraphHead,
    weights: Sequence[float] = (1.0,),
) -> str:
    """Return the last states of the tokens that `head` reads. With several `weights`, return the weighted sum of that many
    last states, counting the embeddings as the first of all."""
    *before, last = encoder.blocks
    first = len(encoder.blocks) + 1 - len(weights)
    several = [] if first else [states if head.every_token else first_token(graph, states, tokens)]
    for number, block in enumerate(before, 1):
        attended = attend(graph, block, states, masks, tokens)
        states = _feed_forward(graph, block, attended, encoder.activation)
        if graph.marked:
            graph.mark(f"layer {number}", tokens.pad(states))
        if number >= first:
            several.append(states if head.every_token else first_token(graph, states, tokens))
    attended = head.last_attention(graph, encoder, states, masks, tokens)
    states = _feed_forward(graph, last, attended, encoder.activation)
    if graph.marked:
        graph.mark(f"layer {len(encoder.blocks)}", tokens.pad(states) if head.every_token else states)
    return _weighted_sum(graph, [*several, states], weights)


def _weighted_sum(graph: Graph, states: list[str], weights: Sequence[float]) -> str:
    """Return the weighted sum of the states of several layers; those of one layer unchanged."""
    if len(states) == 1:
        return states[0]
    if len(set(weights)) > 1:
        states = [
            _scale_states(graph, state, weight, index)
            for index, (state, weight) in enumerate(zip(states, weights, strict=True))
        ]
    total, *others = reversed(states)
    for other in others:
        total = graph.op("Add", [total, other], "layers")
    return total if len(set(weights)) > 1 else _scale_states(graph, total, weights[0])


def _scale_states(graph: Graph, states: str, weight: float, place: int | None = None) -> str:
    name = "float:share_of_layers" if place is None else f"float:share_of_layers_{place}"
    return graph.op("Mul", [states, graph.weight(name, np.array(weight, np.float32))], "layers")


def _feed_forward(graph: Graph, block: Block, states: str, activation: str) -> str:
    if not len(block.up.weight):
        return graph.norm_biased(block.norm, block.down, states)
    neurons = graph.activation(activation, graph.linear(block.up, states), block.up.name)
    output = graph.linear(block.down, neurons)
    return graph.norm(block.norm, output, states)
