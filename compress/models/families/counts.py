"""How many parameters and FLOPs a family's classifiers have, from their sizes alone. BERT's formulas, and those near them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


class Sizes(Protocol):
    """What a formula may ask: `models.dimensions.Dimensions`. `attention`: the width of all heads of a layer side by side; `own`: sizes
    that the family alone has, by config.json's names."""

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
    """Tables of words, positions and segments, their LayerNorm, and the matrix to the hidden size where there is one."""
    tables = (sizes.vocabulary + sizes.positions + sizes.token_types) * sizes.embedding
    projection = sizes.embedding * sizes.hidden + sizes.hidden if sizes.projected else 0
    return tables + 2 * sizes.embedding + projection


def bert_layer(sizes: Sizes) -> int:
    """Four matrices of attention and two of the feed-forward part, with biases, and two LayerNorms."""
    h, a, f = sizes.hidden, sizes.attention, sizes.intermediate
    return 3 * (h * a + a) + (a * h + h) + 2 * h + (h * f + f) + (f * h + h) + 2 * h


def bert_rest(sizes: Sizes) -> int:
    """The head: a layer as wide as the hidden states, but not in one of tokens, and one to the classes; values by distance that all
    layers share."""
    h = sizes.hidden
    return sizes.relative_parameters + (0 if sizes.per_token else h * h + h) + sizes.classes * (h + 1)


def bert_layer_flops(sizes: Sizes, length: float) -> float:
    """Six matrices for each token; scores, and sums of values, for each pair."""
    h, a, f = sizes.hidden, sizes.attention, sizes.intermediate
    return 2 * length * (4 * h * a + 2 * h * f) + 4 * length * length * a


def rest_flops(sizes: Sizes, length: float, *, dense_of_tokens: bool) -> float:
    """Of all that is no layer, in every family: the matrix behind the embeddings, and the head on one token, or on every one, then
    without its first layer unless there are `dense_of_tokens`; without a head no more than the matrix."""
    projection = 2 * length * sizes.embedding * sizes.hidden if sizes.projected else 0
    if not sizes.classes:
        return projection
    if not sizes.per_token:
        return projection + 2 * sizes.hidden * (sizes.hidden + sizes.classes)
    return projection + 2 * length * sizes.hidden * ((sizes.hidden if dense_of_tokens else 0) + sizes.classes)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Formulas over `Sizes`. Parameters of the `embeddings`, of one `layer` with weights of its own, and of the `rest`, which
    includes the head and what layers share; `bare_rest` of that without a head or a pooler. `layer_flops`: multiply-adds × 2 of all
    matmuls of a layer, for a text of so many tokens. `dense_of_tokens`: a head on every token has the layer before the classifier too.
    `own_rest_flops`: as `layer_flops`, of all that is no layer, where that is another than of the rest (`rest_flops`)."""

    embeddings: Callable[[Sizes], int] = bert_embeddings
    layer: Callable[[Sizes], int] = bert_layer
    rest: Callable[[Sizes], int] = bert_rest
    bare_rest: Callable[[Sizes], int] = lambda sizes: sizes.relative_parameters
    layer_flops: Callable[[Sizes, float], float] = bert_layer_flops
    dense_of_tokens: bool = False
    own_rest_flops: Callable[[Sizes, float], float] | None = None


BERT_COUNTS = Counts()
