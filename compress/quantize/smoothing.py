"""SmoothQuant (Xiao et al. 2023, arXiv:2211.10438): move the difficulty of quantizing an activation into the weights.

A matmul X W equals (X / s)(s W) for any factors s > 0, one for each channel of X. With s_j = max|X_j|^α / max|W_j|^(1-α)
(equation 4), outlier channels share the difficulty with the weights. The paper folds 1 / s into the norm before. BERT's
norms come after the residual, which reads the same tensor, so folding would need a multiplication by s on that path: as
expensive as the multiplication by 1 / s used here, which leaves the rest of the graph alone. Attention's context and the
output of a ReLU need none: `value_folding`.

The minor side of an input is the side of zero on which it extends less far: the output of GELU, for example, is at least
-0.17. The 256 quantized values of an input cover both sides, and the factors of quiet channels make its minor side as wide as the
major one, for the sake of few channels. The minor-side weight L, at most 1, prevents that: peaks are
max(max X_j, -min X_j / L), or the other way round, so that the minor side counts 1 / L times and the quantized values
are closer by up to a half. With α = 1 no channel's minor side is wider than L times the major side of the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import astuple, dataclass, field, replace
from functools import reduce

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..graphs.rewriting import drop_unused, replace_all
from ..spec.quantization import Quantize
from .channel_splitting import ChannelRepeats, count_repeats, extra_channels, splittable
from .matmul_errors import MatmulSample
from .node_selection import QuantizationPlan
from .sampling import Feed, Sample
from .value_folding import fold_into_values

ALPHAS = (0.9, 1.0, 0.8, 0.7, 0.6, 0.5, 0.4)  # the most frequent winners first, so that others are abandoned early
MINOR_SIDE_WEIGHTS = (1.0, 0.5, 0.25, 0.125, 0.0625)  # L, tried in this order
_ROWS = 2048  # tokens of each tensor on which an α is judged
_GAIN = 0.9  # smoothing must bring the error below this share to be worth the multiplication by 1 / s
_SPLIT_GAIN = 0.8  # splitting must bring it below this share of the best α's to be worth its time and bytes
_INVERSE = "/inverse"
_LEAST = 0.1  # least peak, relative to the median channel's
_LEAST_HALF = 2.0**-13  # least inverse factor: a float16 of full precision

Array = np.ndarray
Factors = dict[str, Array]


@dataclass(frozen=True)
class Smoothing:
    """Smoothing by int8 matmul, for those that benefit: the factors [channel] of its input, its α, its L if not 1, and the
    repeats of its channels, if any is repeated."""

    factors: Factors = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)
    minor_side_weights: dict[str, float] = field(default_factory=dict)
    channel_repeats: ChannelRepeats = field(default_factory=dict)


def find_factors(model: ModelProto, plan: QuantizationPlan, feeds: Sequence[Feed], spec: Quantize) -> Smoothing:
    """Return the smoothing of each input that benefits.

    Without `spec.alpha`, an input gets the α of `ALPHAS` and the L of `MINOR_SIDE_WEIGHTS` with the least error of its
    matmuls on tokens of `feeds`, or none if no α reduces the error by a tenth. Matmuls that share an input or a weight share
    their smoothing. With `spec.outlier_splitting`, channels are repeated where that is possible and reduces the error by
    another fifth.
    """
    smoothing = Smoothing()
    groups = _groups(model, plan)
    splits = splittable(model, plan) if spec.outlier_splitting else set()
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    with Sample(model, [name for group in groups for name in group.tensors], feeds) as sample:
        rows, reach = sample.rows(_ROWS)
    for group in groups:
        states = np.concatenate([rows[name] for name in group.tensors])
        sides = np.max([reach[name] for name in group.tensors], axis=0)
        matrices = [numpy_helper.to_array(stored[name]) for name in group.weights]
        extra = extra_channels(len(matrices[0])) if set(group.weights) <= splits else 0
        best = _best_smoothing(states, sides, matrices, spec, extra)
        if best is not None:
            smoothing.factors.update(dict.fromkeys(group.matmuls, best.factors))
            smoothing.alphas.update(dict.fromkeys(group.matmuls, best.alpha))
            if best.minor_side_weight != 1:
                smoothing.minor_side_weights.update(dict.fromkeys(group.matmuls, best.minor_side_weight))
            if best.channel_repeats is not None:
                smoothing.channel_repeats.update(dict.fromkeys(group.matmuls, best.channel_repeats))
    return smoothing


def worst_case_factors(model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> Smoothing:
    """Return random factors for every input that can have some, and as many channel repeats as possible: a file smoothed
    this way is no smaller and no faster than any from `find_factors`."""
    smoothing, random = Smoothing(), np.random.default_rng(0)
    splits = splittable(model, plan) if spec.outlier_splitting else set()
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for group in _groups(model, plan):
        channels = stored[group.weights[0]].dims[0]
        inverse = random.uniform(0.5, 2, channels).astype(np.float16)
        smoothing.factors.update(dict.fromkeys(group.matmuls, (1 / inverse).astype(np.float32)))
        if set(group.weights) <= splits and (extra := extra_channels(channels)):
            repeats = np.ones(channels, np.int64)
            repeats[:extra] += 1
            smoothing.channel_repeats.update(dict.fromkeys(group.matmuls, repeats))
    return smoothing


def smooth(model: ModelProto, factors: Mapping[str, Array], *, fold: bool) -> ModelProto:
    """Return a copy in which the matmuls of `factors` read X / s and multiply it by s W; its outputs are the same.

    A graph and its unpadded form take the same factors. `fold`: use `value_folding` where possible, for weights with a scale
    for each column in int8.
    """
    model = deepcopy(model)
    graph = model.graph
    folded = fold_into_values(graph, factors) if fold else set()
    stored = {tensor.name: tensor for tensor in graph.initializer}
    new_tensors: set[str] = set()
    nodes: list[NodeProto] = []

    def store_once(name: str, value: Array) -> None:
        """Store a tensor once: matmuls by one weight, such as the copies of a shared block, have the same factors."""
        if name not in new_tensors:
            new_tensors.add(name)
            graph.initializer.append(numpy_helper.from_array(value, name))

    for node in graph.node:
        if node.name in factors:
            tensor, weight = node.input
            divided, smoothed_weight, inverse = f"{tensor}_smooth", f"{weight}_smooth", f"{weight}{_INVERSE}"
            if node.name in folded:
                divided = tensor
            elif divided not in new_tensors:
                store_once(inverse, (1 / factors[node.name]).astype(np.float32))
                nodes.append(helper.make_node("Mul", [tensor, inverse], [divided], name=f"{tensor}/Smooth"))
                new_tensors.add(divided)
            store_once(smoothed_weight, factors[node.name][:, None] * numpy_helper.to_array(stored[weight]))
            node.input[:] = [divided, smoothed_weight]
        nodes.append(node)
    replace_all(graph.node, nodes)
    drop_unused(graph)
    return model


def halve_factor_precision(model: ModelProto) -> None:
    """Store the multipliers of smoothed inputs in float16, to which they are already rounded. A runtime casts them back when
    it loads the file. In place."""
    graph = model.graph
    whole: dict[str, str] = {}
    for tensor in graph.initializer:
        if _INVERSE in tensor.name:
            whole[tensor.name] = f"inverse{len(whole)}"
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in graph.node:
        node.input[:] = [whole.get(name, name) for name in node.input]
    casts = [
        helper.make_node("Cast", [half], [name], name=f"{name}/Cast", to=TensorProto.FLOAT)
        for half, name in whole.items()
    ]
    replace_all(graph.node, [*casts, *graph.node])


@dataclass(frozen=True)
class _Group:
    """int8 matmuls that belong together, the tensors that they read and the weights that they multiply by."""

    matmuls: tuple[str, ...]
    tensors: tuple[str, ...]
    weights: tuple[str, ...]

    def overlaps(self, other: _Group) -> bool:
        return bool(set(self.tensors) & set(other.tensors) or set(self.weights) & set(other.weights))

    def merged_with(self, other: _Group) -> _Group:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return _Group(*(tuple(dict.fromkeys(own + others)) for own, others in pairs))


def _groups(model: ModelProto, plan: QuantizationPlan) -> list[_Group]:
    """Group the int8 matmuls that share an input or a weight. Leave out those whose weight is also read elsewhere, as by
    ALBERT's last layer: smoothed, it would have to be stored twice."""
    named = set(plan.int8)
    groups: list[_Group] = []
    for node in model.graph.node:
        if node.name not in named:
            continue
        joined = _Group((node.name,), (node.input[0],), (node.input[1],))
        overlapping = [group for group in groups if group.overlaps(joined)]
        groups = [group for group in groups if group not in overlapping]
        groups.append(reduce(_Group.merged_with, [*overlapping, joined]))
    elsewhere = {name for node in model.graph.node if node.name not in named for name in node.input}
    return [group for group in groups if not elsewhere.intersection(group.weights)]


@dataclass(frozen=True)
class _Candidate:
    """A candidate. `errors` [token]: those of its matmuls on the sample."""

    alpha: float
    minor_side_weight: float
    factors: Array
    channel_repeats: Array | None
    errors: Array


def _best_smoothing(
    states: Array, sides: Array, weights: Sequence[Array], spec: Quantize, extra: int
) -> _Candidate | None:
    """Return the α and L with the least error, with `extra` channels if these are worth it; None if no α is. `sides`
    [2, channel]: how far each channel goes above and below zero. L is searched at the best α, and α again at that L."""
    sample = MatmulSample.of(states, weights, spec)
    # The error without smoothing, which a candidate must lower.
    plain = sample.errors(np.ones(states.shape[1], np.float32))
    if plain.sum() == 0:
        return None
    joined = np.concatenate(weights, axis=1)
    largest = np.abs(joined).max(1)
    alphas = ALPHAS if spec.alpha is None else (spec.alpha,)

    def best_of(best: _Candidate, pairs: Iterable[tuple[float, float]], extra: int = 0) -> _Candidate:
        """Return the best of `best` and the candidates with the α and L of `pairs`."""
        for alpha, minor_side_weight in pairs:
            factors = _factors(_peaks(sides, minor_side_weight), largest, alpha)
            repeats = count_repeats(factors[:, None] * joined, extra) if extra else None
            errors = sample.smaller_errors(factors, repeats, to_beat=best.errors)
            if errors is not None:
                best = _Candidate(alpha, minor_side_weight, factors, repeats, errors)
        return best

    # α without a minor-side weight, then that weight at the best α, then α again at that weight.
    factors = _factors(_peaks(sides, 1.0), largest, alphas[0])
    best = _Candidate(alphas[0], 1.0, factors, None, sample.errors(factors))
    best = best_of(best, [(alpha, 1.0) for alpha in alphas[1:]])
    best = best_of(best, [(best.alpha, weight) for weight in MINOR_SIDE_WEIGHTS if weight != 1])
    if best.minor_side_weight != 1:
        best = best_of(best, [(alpha, best.minor_side_weight) for alpha in alphas if alpha != best.alpha])
    # Splitting channels must lower the error by another fifth.
    if extra:
        to_beat = replace(best, errors=_SPLIT_GAIN * best.errors)
        split = best_of(to_beat, [(alpha, best.minor_side_weight) for alpha in alphas], extra)
        best = best if split is to_beat else split
    return best if spec.alpha is not None or best.errors.sum() < _GAIN * plain.sum() else None


def _peaks(sides: Array, minor_side_weight: float) -> Array:
    """Return the peak of each channel, [channel], the minor side divided by its weight."""
    minor, major = sorted(sides, key=lambda side: float(side.sum()))
    return np.maximum(major, minor / minor_side_weight)


def _median_above_zero(peaks: Array) -> float:
    """Return the median; of the channels above zero, if most are zero, as after a ReLU."""
    active = peaks[peaks > 0]
    return float(np.median(peaks)) or (float(np.median(active)) if active.size else 0.0)


def _factors(input_peaks: Array, weight_peaks: Array, alpha: float) -> Array:
    """Compute equation 4 of the paper from the peak of each channel and the largest absolute value of its weights. Factors
    are 1 on average, because ranges are computed afterwards, and inverses of float16 numbers, as stored in the file. A
    channel that is nearly silent on the sample may be active elsewhere: it counts as at least `_LEAST` of the median."""
    input_peaks, weight_peaks = (
        np.maximum(peaks, _LEAST * max(_median_above_zero(peaks), 1e-30)) for peaks in (input_peaks, weight_peaks)
    )
    factors = input_peaks**alpha / weight_peaks ** (1 - alpha)
    inverse = np.exp(np.log(factors).mean()) / factors
    return 1 / np.clip(inverse, _LEAST_HALF, 1 / _LEAST_HALF).astype(np.float16).astype(np.float32)
