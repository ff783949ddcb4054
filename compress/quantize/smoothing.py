"""SmoothQuant (Xiao et al. 2023, arXiv:2211.10438): what is hard to quantize in an activation moves into the weights.

A product X W is (X / s)(s W) for any factors s > 0, one for each channel of X. With s_j = max|X_j|^α / max|W_j|^(1-α)
(equation 4) channels that stick out share the difficulty with the weights. The paper folds 1 / s into the norm before;
BERT's norms come after the residual, which reads the same tensor, and folding would then need a product by s on that
path: as dear as the product by 1 / s that stands here, which leaves the rest of the graph alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import reduce

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ..graphs import drop_unused, replace_all
from ..spec.quantization import Quantize
from .choosing import Choice
from .ranges import Range
from .sampling import Feed, Sample
from .weights import to_int8

ALPHAS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ROWS = 2048  # tokens, of each tensor, on which an α is judged
_GAIN = 0.9  # of the error without: what a product by 1 / s must at least bring to be worth its time
_LEAST = 0.1  # of the median channel

Array = np.ndarray
Factors = dict[str, Array]


def find_factors(
    model: ModelProto, choice: Choice, feeds: Sequence[Feed], spec: Quantize
) -> tuple[Factors, dict[str, float]]:
    """(int8 product -> the factors [channel] of its input, product -> its α), of those that smoothing serves.

    Without `spec.alpha`, each input gets the one of `ALPHAS` with the least squared error of its products on tokens of
    `feeds`, and none where no α takes a tenth off it. Products that share an input or a weight have theirs in common.
    """
    factors: Factors = {}
    alphas: dict[str, float] = {}
    groups = _groups(model, choice)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    with Sample(model, [name for group in groups for name in group.tensors], feeds) as sample:
        rows, largest = sample.rows(_ROWS)
    for group in groups:
        states = np.concatenate([rows[name] for name in group.tensors])
        peaks = np.max([largest[name] for name in group.tensors], axis=0)
        matrices = [numpy_helper.to_array(stored[name]) for name in group.weights]
        found = _best(states, peaks, matrices, spec)
        if found is not None and (spec.alpha is not None or found[2] < _GAIN):
            factors |= dict.fromkeys(group.products, found[1])
            alphas |= dict.fromkeys(group.products, found[0])
    return factors, alphas


def smooth(model: ModelProto, factors: Mapping[str, Array]) -> ModelProto:
    """A copy in which the products of `factors` read X / s and multiply it by s W; its outputs are the same.

    A graph and its packed form take the same factors.
    """
    model = ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    made: set[str] = set()
    nodes: list[NodeProto] = []

    def keep(name: str, value: Array) -> None:
        """Once: products by one weight, such as the repeats of a shared block, have the same factors."""
        if name not in made:
            made.add(name)
            graph.initializer.append(numpy_helper.from_array(value, name))

    for node in graph.node:
        if node.name in factors:
            tensor, weight = node.input
            divided, turned, inverse = f"{tensor}_smooth", f"{weight}_smooth", f"{weight}/inverse"
            if divided not in made:
                keep(inverse, 1 / factors[node.name])
                nodes.append(helper.make_node("Mul", [tensor, inverse], [divided], name=f"{tensor}/Smooth"))
                made.add(divided)
            keep(turned, factors[node.name][:, None] * numpy_helper.to_array(stored[weight]))
            node.input[:] = [divided, turned]
        nodes.append(node)
    replace_all(graph.node, nodes)
    drop_unused(graph)
    return model


@dataclass(frozen=True)
class _Group:
    """int8 products that belong together, the tensors that they read and the weights that they multiply by."""

    products: tuple[str, ...]
    tensors: tuple[str, ...]
    weights: tuple[str, ...]

    def meets(self, other: _Group) -> bool:
        return bool(set(self.tensors) & set(other.tensors) or set(self.weights) & set(other.weights))

    def with_(self, other: _Group) -> _Group:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return _Group(*(tuple(dict.fromkeys(mine + theirs)) for mine, theirs in pairs))


def _groups(model: ModelProto, choice: Choice) -> list[_Group]:
    """Left out is what multiplies a weight that is read elsewhere too, as by ALBERT's last layer: smoothed, it would have
    to stand in the file twice."""
    named = set(choice.int8)
    groups: list[_Group] = []
    for node in model.graph.node:
        if node.name not in named:
            continue
        joined = _Group((node.name,), (node.input[0],), (node.input[1],))
        mine = [group for group in groups if group.meets(joined)]
        groups = [group for group in groups if group not in mine]
        groups.append(reduce(_Group.with_, [*mine, joined]))
    elsewhere = {name for node in model.graph.node if node.name not in named for name in node.input}
    return [group for group in groups if not elsewhere.intersection(group.weights)]


def _best(states: Array, peaks: Array, weights: Sequence[Array], spec: Quantize) -> tuple[float, Array, float] | None:
    """(α, its factors [channel], its error in parts of the error without) of the α with the least."""
    plain = _error(states, weights, np.ones(states.shape[1], np.float32), spec)
    if plain == 0:
        return None
    largest = np.abs(np.concatenate(weights, axis=1)).max(1)
    alphas = ALPHAS if spec.alpha is None else (spec.alpha,)
    tried = [(alpha, _factors(peaks, largest, alpha)) for alpha in alphas]
    errors = [_error(states, weights, factors, spec) / plain for _, factors in tried]
    best = int(np.argmin(errors))
    return (*tried[best], errors[best])


def _factors(states: Array, weights: Array, alpha: float) -> Array:
    """Equation 4 of the paper, from the largest absolute values of each channel; 1 on average, as ranges come after. A channel
    that hardly spoke on the sample may speak elsewhere: it counts as one of `_LEAST`."""
    states, weights = (np.maximum(found, _LEAST * max(float(np.median(found)), 1e-30)) for found in (states, weights))
    factors = states**alpha / weights ** (1 - alpha)
    return (factors / np.exp(np.log(factors).mean())).astype(np.float32)


def _error(states: Array, weights: Sequence[Array], factors: Array, spec: Quantize) -> float:
    """Summed squared error of the products, both operands int8."""
    smoothed = states / factors
    levels = Range(float(smoothed.min()), float(smoothed.max())).rounded(smoothed)
    total = 0.0
    for weight in weights:
        int8, scale = to_int8(factors[:, None] * weight, **spec.weights)
        total += float(((levels @ (int8 * scale) - states @ weight) ** 2).sum())
    return total
