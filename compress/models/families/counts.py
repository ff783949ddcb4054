"""Parameters and FLOPs of a family's classifiers from their sizes alone: BERT's formulas and variations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Sizes(Protocol):
    """What a formula may read: `models.dimensions.Dimensions`. `attention`: the width of all heads of a layer, concatenated; `own`: sizes
    that only this family has, under config.json's names."""

    @property
    def layers(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def attention(self) -> int: ...
    @property
    def intermediate(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def positions(self) -> int: ...
    @property
    def token_types(self) -> int: ...
    @property
    def task_types(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def per_token(self) -> bool: ...
    @property
    def embedding(self) -> int: ...
    @property
    def own(self) -> Mapping[str, int]: ...
    @property
    def projected(self) -> bool: ...
    @property
    def relative_parameters(self) -> int: ...


def bert_embeddings(sizes: Sizes) -> int:
    """Return parameters of the word, position and segment tables, their LayerNorm, and the projection to the hidden size if there is
    one."""
    tables = (sizes.vocabulary + sizes.positions + sizes.token_types) * sizes.embedding
    projection = sizes.embedding * sizes.hidden + sizes.hidden if sizes.projected else 0
    return tables + 2 * sizes.embedding + projection


def bert_layer(sizes: Sizes) -> int:
    """Return parameters of four attention and two feed-forward matrices with biases, and two LayerNorms."""
    h, a, f = sizes.hidden, sizes.attention, sizes.intermediate
    return 3 * (h * a + a) + (a * h + h) + 2 * h + (h * f + f) + (f * h + h) + 2 * h


def bert_rest(sizes: Sizes) -> int:
    """Return parameters of the head and of the relative position bias that all layers share. The head has a hidden-size layer, unless it is
    per token, and a classifier."""
    h = sizes.hidden
    return sizes.relative_parameters + (0 if sizes.per_token else h * h + h) + sizes.classes * (h + 1)


def bert_layer_flops(sizes: Sizes, length: float) -> float:
    """Return FLOPs of six matrices per token, and of scores and weighted sums of values per pair of tokens."""
    h, a, f = sizes.hidden, sizes.attention, sizes.intermediate
    return 2 * length * (4 * h * a + 2 * h * f) + 4 * length * length * a


def rest_flops(sizes: Sizes, length: float, *, dense_of_tokens: bool) -> float:
    """Return FLOPs of everything outside the layers, for every family: the embedding projection and the head, if there is one. A head per
    token has no hidden-size layer unless `dense_of_tokens`."""
    projection = 2 * length * sizes.embedding * sizes.hidden if sizes.projected else 0
    if not sizes.classes:
        return projection
    if not sizes.per_token:
        return projection + 2 * sizes.hidden * (sizes.hidden + sizes.classes)
    return projection + 2 * length * sizes.hidden * ((sizes.hidden if dense_of_tokens else 0) + sizes.classes)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Formulas over `Sizes`. Parameters: of the `embeddings`; of one `layer` with weights of its own; of the `rest`, which includes the
    head and what layers share; `bare_rest`: the rest without a head or pooler. `layer_flops`: multiply-adds × 2 of all matmuls of a layer,
    for a text of so many tokens. `dense_of_tokens`: a head per token also has the layer before the classifier. `own_rest_flops`: replaces
    `rest_flops`. `own_sizes`: what they read besides BERT's sizes, as config.json's names -> default (true counts as 1)."""

    embeddings: Callable[[Sizes], int] = bert_embeddings
    layer: Callable[[Sizes], int] = bert_layer
    rest: Callable[[Sizes], int] = bert_rest
    bare_rest: Callable[[Sizes], int] = lambda sizes: sizes.relative_parameters
    layer_flops: Callable[[Sizes, float], float] = bert_layer_flops
    dense_of_tokens: bool = False
    own_rest_flops: Callable[[Sizes, float], float] | None = None
    own_sizes: Mapping[str, int] = field(default_factory=dict)


BERT_COUNTS = Counts()
