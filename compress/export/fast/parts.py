"""The parts of an encoder classifier, independent of the names in its family. Weights are [out, in], as in torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Linear:
    """`name`: the module's path in the checkpoint, used in graphs and error messages."""

    name: str
    weight: Array
    bias: Array | None


@dataclass(frozen=True)
class Norm:
    name: str
    gain: Array
    bias: Array
    epsilon: float


@dataclass(frozen=True)
class Block:
    """One layer, with LayerNorm after each half. Layers that share their weights have the same parts. `heads`: the numbers
    of the encoder's heads that it has; a layer of a pruned model may have no heads or no neurons."""

    heads: tuple[int, ...]

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    norm: Norm


@dataclass(frozen=True)
class RelativeBias:
    """Biases for the distance of two tokens. `values` [1, head, 2 · positions]: entry i is added to the score of a key that
    is i - positions tokens after its query."""

    name: str
    values: Array


@dataclass(frozen=True)
class Encoder:
    """A classifier of texts or of tokens, a regressor, or an encoder alone.

    `positions`: row i is that of token i. `types`: None if the model knows one segment. `projection` maps embeddings to the
    hidden size. `head`: the layers applied in turn to the first token's state, or to every token's, each with the activation
    that follows it; empty if texts become vectors. `prefix`: the encoder's path in the model, with a trailing point.
    `relative`: None if attention ignores the distance of two tokens.
    """

    words: Array
    positions: Array
    types: Array | None
    embedding_norm: Norm
    projection: Linear | None
    blocks: tuple[Block, ...]
    activation: str
    head: tuple[tuple[Linear, str | None], ...]
    prefix: str
    relative: RelativeBias | None = None

    def of_one_segment(self) -> Encoder:
        """Return the encoder for texts that are all of segment 0: its row is added to every position's."""
        if self.types is None:
            return self
        return replace(self, positions=self.positions + self.types[0], types=None)
