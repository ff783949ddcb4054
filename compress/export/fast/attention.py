"""Attention of every token, in one node if the opset has it, or of the first token alone, without the others' keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import Graph
from .padding import Tokens
from .parts import Block, RelativeBias


@dataclass(frozen=True)
class Masks:
    """Values added to the scores: 0 for a token, the lowest float for padding, and the model's bias for the distance of two
    tokens.

    `rows`, for queries of all tokens: [batch, 1, 1, length]; [batch, 1, length, length] if attention is one operator;
    [batch, heads, length, length] with biases for distances. `first`, for the first token's query: [batch, 1, length] or
    [batch, heads, length]. `heads`: the number of heads with rows of their own, 0 if all share one row.
    """

    rows: str
    first: str
    heads: int = 0

    def of(self, graph: Graph, block: Block) -> Masks:
        """Return the masks of the heads that the block has."""
        if not self.heads or len(block.heads) == self.heads:
            return self
        kept, scope = graph.integers(*block.heads), _scope(block)
        rows, first = (graph.op("Gather", [mask, kept], scope, axis=1) for mask in (self.rows, self.first))
        return Masks(rows, first, len(block.heads))


def make_masks(graph: Graph, relative: RelativeBias | None = None) -> Masks:
    """Make the masks, once for all layers. ONNX Runtime's Attention takes one mask row per query, so the row is repeated for
    it."""
    one, lowest = (graph.weight(name, np.array(value, np.float32)) for name, value in _NUMBERS.items())
    real = graph.op("Cast", ["attention_mask"], "mask", to=1)
    padding = graph.op("Sub", [one, real], "mask")
    added = graph.op("Mul", [padding, lowest], "mask")
    first = graph.op("Unsqueeze", [added, graph.integers(1)], "mask")
    row = graph.op("Unsqueeze", [first, graph.integers(1)], "mask")
    if relative is not None:
        return _with_distances(graph, relative, row, first)
    if not graph.has_attention:
        return Masks(row, first)
    batch = graph.op("Shape", ["attention_mask"], "mask", start=0, end=1)
    length = graph.op("Shape", ["attention_mask"], "mask", start=1, end=2)
    shape = graph.op("Concat", [batch, graph.integers(1), length, length], "mask", axis=0)
    return Masks(graph.op("Expand", [row, shape], "mask"), first)


def _with_distances(graph: Graph, relative: RelativeBias, row: str, first: str) -> Masks:
    """Add the biases for distances to the masks.

    Each query's row of biases [length] is the previous one, shifted by one. So the biases for distances 0 … length - 1,
    -length … -1 are repeated as often as there are tokens, one copy after the other, and cut into rows that are shorter by
    one: each row then begins at the right distance. Copying them is far quicker than looking them up.
    """
    scope, half = relative.name, relative.values.shape[2] // 2
    table, middle = graph.weight(f"{scope}.by_distance", relative.values), graph.integers(half)
    zero, last = graph.integers(0), graph.integers(2)
    length = graph.op("Shape", ["input_ids"], scope, start=1, end=2)
    # One copy: the biases for distances 0 … length - 1, then -length … -1, [1, heads, 2 · length].
    after = graph.op("Slice", [table, middle, graph.op("Add", [middle, length], scope), last], scope)
    before = graph.op("Slice", [table, graph.op("Sub", [middle, length], scope), middle, last], scope)
    one_copy = graph.op("Concat", [after, before], scope, axis=2)
    # As many copies as tokens, of which the first length · (2 · length - 1) biases are cut into `length` rows.
    repeats = graph.op("Concat", [graph.integers(1, 1), length], scope, axis=0)
    copies = graph.op("Tile", [one_copy, repeats], scope)
    doubled = graph.op("Mul", [length, graph.integers(2)], scope)
    end = graph.op("Mul", [length, graph.op("Sub", [doubled, graph.integers(1)], scope)], scope)
    shape = graph.op("Concat", [graph.integers(0, 0), length, graph.integers(-1)], scope, axis=0)
    rows = graph.op("Reshape", [graph.op("Slice", [copies, zero, end, last], scope), shape], scope)
    # The first `length` biases of each row are those of a query.
    rows = graph.op("Slice", [rows, zero, length, graph.integers(3)], scope)
    heads = relative.values.shape[1]
    return Masks(graph.op("Add", [rows, row], scope), graph.op("Add", [after, first], scope), heads)


_NUMBERS = {"float:one": 1.0, "float:lowest": np.finfo(np.float32).min}


def attend(graph: Graph, block: Block, states: str, masks: Masks, tokens: Tokens) -> str:
    """Return the states [batch, length, hidden] after the attention of `block`, residual and norm included.

    The query's weights include the factor 1/√(head size).
    """
    if not block.heads:
        return graph.norm_biased(block.attention_norm, block.output, states)
    heads, masks = len(block.heads), masks.of(graph, block)
    parts = [
        graph.linear(block.query, states, scale=_scale(block)),
        graph.linear(block.key, states),
        graph.linear(block.value, states),
    ]
    query, key, value = (tokens.for_attention(part) for part in parts)
    scope = _scope(block)
    if graph.has_attention:
        inputs = [query, key, value, masks.rows]
        context = graph.op("Attention", inputs, scope, q_num_heads=heads, kv_num_heads=heads, scale=1.0)
    else:
        context = _context(graph, scope, (query, key, value), masks.rows, heads, tokens.context_order)
    return graph.norm(block.attention_norm, graph.linear(block.output, tokens.unpad(context)), states)


def _context(
    graph: Graph, scope: str, parts: tuple[str, str, str], mask: str, heads: int, order: tuple[int, ...]
) -> str:
    """Return softmax(Q Kᵀ + mask) V of queries, keys and values [length, batch, hidden]. Its axes batch, head, length, size
    are transposed to `order`, and the last two are merged."""
    query, key, value = (graph.op("Reshape", [part, graph.integers(0, 0, heads, -1)], scope) for part in parts)
    query, value = (graph.op("Transpose", [part], scope, perm=[1, 2, 0, 3]) for part in (query, value))
    key = graph.op("Transpose", [key], scope, perm=[1, 2, 3, 0])
    scores = graph.op("Add", [graph.op("MatMul", [query, key], scope), mask], scope)
    context = graph.op("MatMul", [graph.op("Softmax", [scores], scope, axis=-1), value], scope)
    context = graph.op("Transpose", [context], scope, perm=list(order))
    return graph.op("Reshape", [context, graph.integers(0, 0, -1)], scope)


def attend_first(graph: Graph, block: Block, states: str, first: str, masks: Masks) -> str:
    """Like `attend`, for the first token's state [batch, 1, hidden] alone, without keys and values.

    With one query q, a head's scores are q · (X W_k)ᵀ = (q W_kᵀ) · Xᵀ, up to q · b_k, which is the same for all tokens and
    cancels in softmax. The context is P · (X W_v + b_v) = (P · X) W_v + b_v, since P sums to 1.
    """
    if not block.heads:
        return graph.norm_biased(block.attention_norm, block.output, first)
    scope, heads, masks = _scope(block), len(block.heads), masks.of(graph, block)
    size = block.query.weight.shape[0] // heads
    query = graph.linear(block.query, first, scale=_scale(block))
    query = graph.op("Reshape", [query, graph.integers(-1, heads, size)], scope)
    # Heads first, so that a head has one product for the whole batch.
    query = graph.op("Transpose", [query], scope, perm=[1, 0, 2])
    key = graph.stacked(block.key, (-1, heads, size), (1, 2, 0))
    state_query = graph.op("MatMul", [query, key], f"{block.key.name}.absorbed")
    state_query = graph.op("Transpose", [state_query], scope, perm=[1, 0, 2])
    transposed = graph.op("Transpose", [states], scope, perm=[0, 2, 1])
    scores = graph.op("Add", [graph.op("MatMul", [state_query, transposed], scope), masks.first], scope)
    states_read = graph.op("MatMul", [graph.op("Softmax", [scores], scope, axis=-1), states], scope)
    states_read = graph.op("Transpose", [states_read], scope, perm=[1, 0, 2])
    value = graph.stacked(block.value, (-1, heads, size), (1, 0, 2))
    context = graph.op("MatMul", [states_read, value], f"{block.value.name}.absorbed")
    context = graph.op("Transpose", [context], scope, perm=[1, 0, 2])
    context = graph.op("Reshape", [context, graph.integers(-1, 1, heads * size)], scope)
    context = graph.biased(block.value, context)
    return graph.norm(block.attention_norm, graph.linear(block.output, context), first)


def _scale(block: Block) -> float:
    return (block.query.weight.shape[0] // len(block.heads)) ** -0.5


def _scope(block: Block) -> str:
    return block.query.name.rpartition(".")[0]
