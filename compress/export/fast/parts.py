"""An encoder classifier as its parts, whatever the family calls them. Weights are as torch has them, [out, in]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Linear:
    """`name`: the module's path in the checkpoint, by which graphs and error messages call it."""

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
    """One layer, LayerNorm after each half. Layers that share their weights have the same parts. `heads`: which of the encoder's it
    has, by number; a layer of a pruned model may have none, or no neurons."""

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
class Relative:
    """`values` [1, head, 2 · positions]: what attention adds to the score of a key that stands place - positions tokens after
    its query."""

    name: str
    values: Array


@dataclass(frozen=True)
class Encoder:
    """A classifier of texts or of tokens, a regressor, or an encoder alone.

    `positions`: row i is that of token i. `types` is None where the model knows one segment. `projection` takes
    embeddings to the hidden size. `head`: what is done to the first token's state, or to every token's, one after the
    other, each with the activation that follows it; nothing where texts become vectors. `prefix`: the encoder's place in the model,
    with a point
    behind it. `relative` is None where attention does not know the distance of two tokens.
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
    relative: Relative | None = None

    def of_one_segment(self) -> Encoder:
        """For texts that are all of segment 0: its row is added to every position's."""
        if self.types is None:
            return self
        return replace(self, positions=self.positions + self.types[0], types=None)
