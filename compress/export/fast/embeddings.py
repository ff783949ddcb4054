"""From tokens to states: three look-ups, whose sum is normalised and projected to the hidden size."""

from __future__ import annotations

from .graph import Graph
from .padding import Tokens
from .parts import Encoder


def embed(graph: Graph, encoder: Encoder, tokens: Tokens) -> str:
    """Return the states before the first layer, in the order of `tokens.ordered`. Positions are a slice of their table, not
    a look-up: they count a padding token inside a text, unlike transformers in families with `positions_after_padding`."""
    scope = f"{encoder.prefix}embeddings"
    words = graph.weight(f"{scope}.word_embeddings.weight", encoder.words)
    positions = graph.weight(f"{scope}.position_embeddings.weight", encoder.positions)
    length = graph.op("Shape", ["input_ids"], scope, start=1, end=2)
    rows = graph.op("Slice", [positions, graph.integers(0), length, graph.integers(0)], scope)
    rows = tokens.broadcastable(rows)
    states = graph.op("Gather", [words, tokens.ordered("input_ids")], f"{scope}.word_embeddings")
    if encoder.types is not None:
        types = graph.weight(f"{scope}.token_type_embeddings.weight", encoder.types)
        looked_up = graph.op("Gather", [types, tokens.ordered("token_type_ids")], f"{scope}.token_type_embeddings")
        states = graph.op("Add", [states, looked_up], f"{scope}.token_type_embeddings")
    states = graph.op("Add", [states, rows], f"{scope}.position_embeddings")
    states = graph.norm(encoder.embedding_norm, states)
    return states if encoder.projection is None else graph.linear(encoder.projection, states)
