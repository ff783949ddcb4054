"""Where the tokens of a batch stand: padded to its longest text, or packed into one row without the padding."""

from __future__ import annotations

from ...packed import SCOPE
from .writing import Graph


class Padded:
    """States [batch, length, width] everywhere."""

    def pack(self, states: str) -> str:
        return states

    def spread(self, states: str) -> str:
        return states


class Packed:
    """States [1, token, width] of the real tokens alone, one text after the other, for what treats a token by itself;
    padded ones for attention. What stands in the padding then is some real token's, which the mask hides."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        mask = graph.op("Reshape", ["attention_mask", graph.integers(-1)], SCOPE)
        self._places = graph.op("Squeeze", [graph.op("NonZero", [mask], SCOPE), graph.integers(0)], SCOPE)
        counted = graph.op("CumSum", [mask, graph.integers(0)], SCOPE)
        self._tokens = graph.op("Sub", [counted, graph.integers(1)], SCOPE)
        self._shape = graph.op("Shape", ["attention_mask"], SCOPE)

    def pack(self, states: str) -> str:
        """[batch, length, width] to [1, token, width]."""
        row = self._graph.op("Flatten", [states], SCOPE, axis=2)
        packed = self._graph.op("Gather", [row, self._places], SCOPE, axis=0)
        return self._graph.op("Unsqueeze", [packed, self._graph.integers(0)], SCOPE)

    def spread(self, states: str) -> str:
        """[1, token, width] to [batch, length, width]."""
        row = self._graph.op("Squeeze", [states, self._graph.integers(0)], SCOPE)
        tokens = self._graph.op("Reshape", [self._tokens, self._shape], SCOPE)
        return self._graph.op("Gather", [row, tokens], SCOPE, axis=0)


Tokens = Padded | Packed
