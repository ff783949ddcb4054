"""Attention in one node, its mask made once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .parts import Block
from .writing import Graph


@dataclass(frozen=True)
class Masks:
    """What is added to the scores: 0 for a token, the lowest float for padding.

    `rows` [batch, 1, length, length] for queries of all tokens, `first` [batch, 1, 1, length] for the first one's.
    """

    rows: str
    first: str


def make_masks(graph: Graph) -> Masks:
    """ONNX Runtime's Attention takes a row of the mask for each query, so the one row is repeated, once for all layers."""
    one, lowest = (graph.weight(name, np.array(value, np.float32)) for name, value in _NUMBERS.items())
    real = graph.op("Cast", ["attention_mask"], "mask", to=1)
    padding = graph.op("Sub", [one, real], "mask")
    added = graph.op("Mul", [padding, lowest], "mask")
    first = graph.op("Unsqueeze", [added, graph.integers(1, 2)], "mask")
    batch = graph.op("Shape", ["attention_mask"], "mask", start=0, end=1)
    length = graph.op("Shape", ["attention_mask"], "mask", start=1, end=2)
    shape = graph.op("Concat", [batch, graph.integers(1), length, length], "mask", axis=0)
    return Masks(graph.op("Expand", [first, shape], "mask"), first)


_NUMBERS = {"float:one": 1.0, "float:lowest": np.finfo(np.float32).min}


def attend(graph: Graph, block: Block, states: str, queries: str, mask: str, heads: int) -> str:
    """What the attention of `block` gives for `queries` [batch, query, hidden] over `states`, residual and norm included.

    1/√(head size) is in the query's weights.
    """
    scale = (block.query.weight.shape[0] // heads) ** -0.5
    parts = [
        graph.linear(block.query, queries, scale=scale),
        graph.linear(block.key, states),
        graph.linear(block.value, states),
    ]
    scope = block.query.name.rpartition(".")[0]
    context = graph.op("Attention", [*parts, mask], scope, q_num_heads=heads, kv_num_heads=heads, scale=1.0)
    output = graph.linear(block.output, context)
    return graph.norm(block.attention_norm, graph.op("Add", [output, queries], block.attention_norm.name))
