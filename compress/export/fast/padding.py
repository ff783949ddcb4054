"""Where the tokens of a batch stand: padded to its longest text, or unpadded: in one row, one text after the other."""

from __future__ import annotations

from ...shared_weights import SCOPE
from .writing import Graph


class Padded:
    """States [batch, length, width] everywhere."""

    def unpad(self, states: str) -> str:
        return states

    def pad(self, states: str) -> str:
        return states


class Unpadded:
    """States [1, token, width] of the real tokens alone, one text after the other, for what treats a token by itself;
    padded ones for attention. What stands in the padding then is some real token's, which the mask hides."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        mask = graph.op("Reshape", ["attention_mask", graph.integers(-1)], SCOPE)
        self._places = graph.op("Squeeze", [graph.op("NonZero", [mask], SCOPE), graph.integers(0)], SCOPE)
        counted = graph.op("CumSum", [mask, graph.integers(0)], SCOPE)
        self._tokens = graph.op("Sub", [counted, graph.integers(1)], SCOPE)
        self._shape = graph.op("Shape", ["attention_mask"], SCOPE)

    def unpad(self, states: str) -> str:
        """[batch, length, width] to [1, token, width]."""
        row = self._graph.op("Flatten", [states], SCOPE, axis=2)
        unpadded = self._graph.op("Gather", [row, self._places], SCOPE, axis=0)
        return self._graph.op("Unsqueeze", [unpadded, self._graph.integers(0)], SCOPE)

    def pad(self, states: str) -> str:
        """[1, token, width] to [batch, length, width]."""
        row = self._graph.op("Squeeze", [states, self._graph.integers(0)], SCOPE)
        tokens = self._graph.op("Reshape", [self._tokens, self._shape], SCOPE)
        return self._graph.op("Gather", [row, tokens], SCOPE, axis=0)


Tokens = Padded | Unpadded
