"""Outlier channel splitting (Zhao et al. 2019, arXiv:1901.09504) of the outliers that smoothing moved into the weights.

A smoothed weight has outlier rows where its input had outlier channels. Each column has one scale, so the largest row
coarsens all others. Repeating a row m times, each copy with a part of its value, makes it m times smaller; its input channel
is then repeated m times too. This costs only the additional rows if the input comes elementwise from another matmul, as in
the second matmul of a feed-forward layer: the first one's column is repeated. In BERT's early layers a neuron or two fire
far more strongly than all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from ..graphs.rewriting import drop_unused
from .node_selection import QuantizationPlan

Array = np.ndarray
ChannelRepeats = dict[str, Array]

_ELEMENTWISE = {"Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Erf", "Gelu", "Relu", "Tanh", "Sigmoid"}
_SHARE = 128  # one extra channel per this many
_MULTIPLE = 16  # channels that int8 kernels take at a time: the total is rounded up to a multiple
_LIMIT = 32  # at most one extra channel per this many


@dataclass(frozen=True)
class Chain:
    """The path from the matmul `first` to the input of the matmul `second`, through elementwise nodes; the names of their
    [channel] vectors are in `vectors`."""

    first: NodeProto
    second: NodeProto
    nodes: tuple[NodeProto, ...]
    vectors: frozenset[str]


def splittable(model: ModelProto, plan: QuantizationPlan) -> set[str]:
    """Return the weights of int8 matmuls whose rows can be repeated without storing any weight twice: all readers of the
    weight, and of the weights of the preceding matmuls, are in its chains."""
    readers = _readers(model)
    by_weight: dict[str, list[Chain]] = defaultdict(list)
    for chain in _chains(model, plan.int8).values():
        by_weight[chain.second.input[1]].append(chain)
    return {weight for weight, those in by_weight.items() if _has_no_other_reader(weight, those, readers)}


def split_before(model: ModelProto, channel_repeats: Mapping[str, Array]) -> ChannelRepeats:
    """Map the matmul before each matmul of `channel_repeats` to the repeat counts of its columns."""
    return {chain.first.name: channel_repeats[name] for name, chain in _chains(model, channel_repeats).items()}


def _readers(model: ModelProto) -> dict[str, list[NodeProto]]:
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            readers[name].append(node)
    return readers


def _chains(model: ModelProto, names: Container[str]) -> dict[str, Chain]:
    """Return the chains of the matmuls `names`, by name, leaving out those whose input does not come channel by channel from
    one matmul."""
    graph = model.graph
    dims = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    readers, outputs = _readers(model), {value.name for value in graph.output}
    chains: dict[str, Chain] = {}
    for node in graph.node:
        if node.name in names and node.op_type == "MatMul" and len(dims.get(node.input[1], ())) == 2:
            chain = _chain(node, dims, makers, readers, outputs)
            if chain is not None:
                chains[node.name] = chain
    return chains


def count_repeats(weight: Array, extra: int) -> Array:
    """Return how many times to store each row of `weight` [in, out], with `extra` additional rows in all: each one goes to
    the row that lowers the columns' squared scales most."""
    channel_repeats = np.ones(len(weight), np.int64)
    # A row that is not among a column's `extra` + 1 largest cannot become its largest.
    largest = min(len(weight), extra + 1)
    rows = np.argpartition(-np.abs(weight), largest - 1, axis=0)[:largest]
    columns = np.arange(weight.shape[1])
    size = np.abs(weight)[rows, columns]
    for _ in range(extra):
        # The row that sets each column's scale, and the scale.
        parts = size / channel_repeats[rows]
        index = parts.argmax(0)
        highest, top = rows[index, columns], parts[index, columns]
        # The scale if that row were repeated once more; each row gains the sum over the columns whose scale it sets.
        parts[index, columns] = size[index, columns] / (channel_repeats[highest] + 1)
        gains = np.bincount(highest, top**2 - parts.max(0) ** 2, minlength=len(weight))
        channel_repeats[gains.argmax()] += 1
    return channel_repeats


def extra_channels(channels: int) -> int:
    """Return how many channels to add to a matmul with `channels`: 0 for a small one, where they cost more than they gain."""
    extra = -(-(channels + channels // _SHARE) // _MULTIPLE) * _MULTIPLE - channels
    return extra if extra * _LIMIT <= channels else 0


def source_channels(channel_repeats: Array) -> Array:
    """Return the source channel of each channel of the split tensor: the original channels in order, then the additional
    copies."""
    channels = np.arange(len(channel_repeats))
    return np.concatenate([channels, np.repeat(channels, channel_repeats - 1)])


def split_rows(weight: Array, channel_repeats: Array, *, axis: int | None, bits: int) -> Array:
    """Return `weight` [in, out] with its rows in the order of `source_channels`; the rows of a channel add up to its original row.

    All parts but the first are exact quantized values of `to_int8` with `axis` and `bits`, so an original row has one rounding error
    rather than one per part.
    """
    top = 2 ** (bits - 1) - 1
    largest = (np.abs(weight) / channel_repeats[:, None]).max(axis=None if axis is None else 0)
    scale = np.where(largest > 0, largest / np.float32(top), np.float32(1)).astype(np.float32)
    order = source_channels(channel_repeats)
    split_weight = weight[order].astype(np.float32)
    for channel in np.flatnonzero(channel_repeats > 1):
        count = channel_repeats[channel]
        rows = np.flatnonzero(order == channel)
        quantized = np.rint(weight[channel] / scale)
        rest, sign = np.abs(quantized), np.sign(quantized)
        for index, row in enumerate(rows[:0:-1]):  # the larger parts first, so that the rounded one stays in range
            part = np.ceil(rest / (count - index))
            split_weight[row] = sign * part * scale
            rest -= part
        split_weight[rows[0]] = weight[channel] - split_weight[rows[1:]].sum(0)
    return split_weight


def split_channels(
    model: ModelProto, channel_repeats: Mapping[str, Array], *, axis: int | None, bits: int
) -> ModelProto:
    """Return a copy of `model` that repeats the channels of the matmuls in `channel_repeats`; its outputs are the same.

    `axis`, `bits`: of the weights' int8. RuntimeError: a matmul whose channels cannot be repeated.
    """
    model = deepcopy(model)
    graph, chains = model.graph, _chains(model, channel_repeats)
    stored = {tensor.name: tensor for tensor in graph.initializer}
    if missing := [name for name in channel_repeats if name not in chains]:
        raise RuntimeError(f"{missing[0]}: its input is not made channel by channel from another matmul's")

    names: dict[tuple[str, bytes], str] = {}

    def widened_tensor(name: str, counts: Array, repeat_channels: Callable[[Array], Array]) -> str:
        """Store the widened tensor once for equal `counts`, as the copies of a shared block have; layers may share just a
        bias."""
        key = (name, counts.tobytes())
        if key not in names:
            number = sum(other == name for other, _ in names)
            names[key] = f"{name}_split" + (f"_{number}" if number else "")
            value = np.ascontiguousarray(repeat_channels(numpy_helper.to_array(stored[name])))
            graph.initializer.append(numpy_helper.from_array(value, names[key]))
        return names[key]

    for name, chain in chains.items():
        _widen(chain, channel_repeats[name], widened_tensor, axis=axis, bits=bits)
    if channel_repeats:
        del graph.value_info[:]  # its shapes are outdated
        drop_unused(graph)
    return model


def _widen(
    chain: Chain, counts: Array, wide: Callable[[str, Array, Callable[[Array], Array]], str], **int8: Any
) -> None:
    """Make the nodes of `chain` read the weights and vectors that `wide` stores. In place."""
    order = source_channels(counts)
    for node in (chain.first, *chain.nodes):
        for index, name in enumerate(node.input):
            if name in chain.vectors or (node is chain.first and index == 1):
                node.input[index] = wide(name, counts, lambda value: value[..., order])
    weight = chain.second.input[1]
    chain.second.input[1] = wide(weight, counts, lambda value: split_rows(value, counts, **int8))


def _chain(
    second: NodeProto,
    dims: Mapping[str, tuple[int, ...]],
    makers: Mapping[str, NodeProto],
    readers: Mapping[str, Sequence[NodeProto]],
    outputs: set[str],
) -> Chain | None:
    """Follow the input of `second` back to the one matmul that all of it comes from; None if there is no such matmul."""
    channels = dims[second.input[1]][0]
    nodes: list[NodeProto] = []
    vectors: set[str] = set()
    firsts: list[NodeProto] = []
    waiting = [second.input[0]]
    seen: set[str] = set()
    while waiting:
        tensor = waiting.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        node = makers.get(tensor)
        if node is None or tensor in outputs:
            return None
        if node.op_type == "MatMul":
            if len(dims.get(node.input[1], ())) != 2 or dims[node.input[1]][1] != channels:
                return None
            firsts.append(node)
            continue
        if node.op_type not in _ELEMENTWISE or len(node.output) != 1:
            return None
        nodes.append(node)
        for name in node.input:
            if name not in dims:
                waiting.append(name)
            elif dims[name] and dims[name][-1] == channels and np.prod(dims[name]) == channels:
                vectors.add(name)
            elif np.prod(dims[name]) != 1:
                return None
    inside = {id(node) for node in (*nodes, second)}
    if len(firsts) != 1 or any(id(reader) not in inside for name in seen for reader in readers[name]):
        return None
    return Chain(firsts[0], second, tuple(reversed(nodes)), frozenset(vectors))


def _has_no_other_reader(weight: str, those: Sequence[Chain], readers: Mapping[str, Sequence[NodeProto]]) -> bool:
    inside = {id(node) for chain in those for node in (chain.first, chain.second, *chain.nodes)}
    names = {weight, *(chain.first.input[1] for chain in those)}
    return all(id(reader) in inside for name in names for reader in readers[name])
