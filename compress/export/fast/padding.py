"""The layout of a batch's tokens: padded to the longest text, or unpadded, in one row with one text after the other.

For attention in plain matmuls the states are [length, batch, width]: a head's queries are then [length, batch, head, size],
and ONNX Runtime multiplies the heads in place, while it would copy those of [batch, length, head, size]. ONNX's Attention
takes [batch, length, width].
"""

from __future__ import annotations

from ...graphs.shared_weights import SCOPE
from .graph import Graph


class Padded:
    """States are [length, batch, width] everywhere, or [batch, length, width] if attention is one operator."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._sequence_first = graph, not graph.has_attention
        self.context_order = (2, 0, 1, 3)

    def ordered(self, ids: str) -> str:
        """Return token ids as [batch, length] or [length, batch]."""
        return self._graph.op("Transpose", [ids], ids, perm=[1, 0]) if self._sequence_first else ids

    def broadcastable(self, rows: str) -> str:
        """Reshape rows [length, width] so that they can be added to states."""
        return (
            self._graph.op("Unsqueeze", [rows, self._graph.integers(1)], "positions") if self._sequence_first else rows
        )

    def unpad(self, states: str) -> str:
        return states

    def for_attention(self, states: str) -> str:
        return states

    def pad(self, states: str) -> str:
        """Convert states to [batch, length, width]."""
        return self._graph.op("Transpose", [states], "tokens", perm=[1, 0, 2]) if self._sequence_first else states


class Unpadded:
    """States are [1, token, width] of only the real tokens, one text after the other, for operations on single tokens, and
    padded for attention. The padding then holds the state of some real token, which the mask hides."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.context_order = (0, 2, 1, 3)
        mask = graph.op("Reshape", ["attention_mask", graph.integers(-1)], SCOPE)
        self._places = graph.op("Squeeze", [graph.op("NonZero", [mask], SCOPE), graph.integers(0)], SCOPE)
        counted = graph.op("CumSum", [mask, graph.integer(0)], SCOPE)
        shape = graph.op("Shape", ["attention_mask"], SCOPE)
        tokens = graph.op("Sub", [counted, graph.integers(1)], SCOPE)
        self._tokens = graph.op("Reshape", [tokens, shape], SCOPE)
        sequence_first = not graph.has_attention
        self._tokens_for_attention = (
            graph.op("Transpose", [self._tokens], SCOPE, perm=[1, 0]) if sequence_first else self._tokens
        )

    def ordered(self, ids: str) -> str:
        return ids

    def broadcastable(self, rows: str) -> str:
        return rows

    def unpad(self, states: str) -> str:
        """Convert [batch, length, width] to [1, token, width]."""
        row = self._graph.op("Flatten", [states], SCOPE, axis=2)
        unpadded = self._graph.op("Gather", [row, self._places], SCOPE, axis=0)
        return self._graph.op("Unsqueeze", [unpadded, self._graph.integers(0)], SCOPE)

    def for_attention(self, states: str) -> str:
        """Convert [1, token, width] to [length, batch, width], or [batch, length, width]."""
        return self._gather_rows(states, self._tokens_for_attention)

    def pad(self, states: str) -> str:
        """Convert [1, token, width] to [batch, length, width]."""
        return self._gather_rows(states, self._tokens)

    def _gather_rows(self, states: str, tokens: str) -> str:
        row = self._graph.op("Squeeze", [states, self._graph.integers(0)], SCOPE)
        return self._graph.op("Gather", [row, tokens], SCOPE, axis=0)


Tokens = Padded | Unpadded
