"""The costs of heads and neurons, and the shape that fits a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ..models.dimensions import Dimensions
from ..models.pruned.shape import PrunedShape
from .unit_choice import Widths, cheapest_unit, choose_widths, head_counts, neuron_counts


class UnitScores(Protocol):
    """The loss of one part of a layer, its heads or its neurons, on a scale that all parts of the model share."""

    def losses(self, counts: np.ndarray) -> np.ndarray:
        """Return the loss for each count of units that stay, [option]; never more for a larger count."""
        ...

    def kept(self, count: int) -> list[int]:
        """Return the indices, ascending, of the units that stay if `count` do."""
        ...


@dataclass(frozen=True)
class Kept:
    """The indices, ascending, of the heads and neurons that stay in each layer."""

    heads: list[list[int]]
    neurons: list[list[int]]


@dataclass(frozen=True)
class Costs:
    """Costs in FLOPs, milliseconds or bytes. `widths`: two for each layer, the cost of each count of heads and of neurons.
    `fixed`: the cost of the rest of the model."""

    widths: list[Widths]
    fixed: float = 0.0

    @property
    def whole(self) -> float:
        """The cost of the model before pruning."""
        return self.fixed + sum(float(each.costs[-1]) for each in self.widths)

    @property
    def least(self) -> float:
        """The cost of a model with one head, in the layer where it costs the least, and nothing else in any layer."""
        head = self.widths[cheapest_unit(self.widths, self.heads)].costs
        return self.fixed + sum(float(each.costs[0]) for each in self.widths) + float(head[1] - head[0])

    @property
    def heads(self) -> range:
        """The indices of heads in `widths`."""
        return range(0, len(self.widths), 2)

    def of(self, shape: PrunedShape) -> float:
        """Return the cost of a model of this shape. KeyError: a width is not an option."""
        counts = [count for pair in zip(map(len, shape.heads), shape.neurons, strict=True) for count in pair]
        costs = [
            dict(zip(each.counts.tolist(), each.costs.tolist(), strict=True))[count]
            for each, count in zip(self.widths, counts, strict=True)
        ]
        return self.fixed + float(sum(costs))


Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class MeasuredCosts:
    """Milliseconds or bytes, measured on models of this family's layers, for the model to prune.

    `empty`: of the whole model with no heads and no neurons in any layer. `heads`, `neurons`: (count, how much more a layer
    with this count costs than one with none), ascending from (0, 0), interpolated linearly. `last_heads`, `last_neurons`:
    the same for the last layer, which a graph may compute for the first token alone.
    """

    empty: float
    heads: Points
    neurons: Points
    last_heads: Points
    last_neurons: Points

    def costs(self, sizes: Dimensions) -> Costs:
        """Return the costs of a model of these sizes, pruned or not."""
        *inner, (last_heads, last_neurons) = unit_counts(sizes)
        widths = []
        for heads, neurons in inner:
            widths += [
                _interpolate_costs(head_counts(heads), self.heads),
                _interpolate_costs(neuron_counts(neurons), self.neurons),
            ]
        widths.append(_interpolate_costs(head_counts(last_heads), self.last_heads))
        widths.append(_interpolate_costs(neuron_counts(last_neurons), self.last_neurons))
        return Costs(widths, self.empty)


def _interpolate_costs(counts: np.ndarray, points: Points) -> Widths:
    """Return the interpolated costs, made monotonic: it is noise if a wider part is measured to cost less."""
    where, more = np.array(points, float).T
    return Widths(counts, np.interp(counts, where, np.maximum.accumulate(np.maximum(more, 0))))


def flops_costs(sizes: Dimensions, length: float) -> Costs:
    """Return the costs in FLOPs of the layers for a text of `length` tokens."""
    widths = []
    for heads, neurons in unit_counts(sizes):
        some, several = head_counts(heads), neuron_counts(neurons)
        widths.append(Widths(some, np.array([_flops(sizes, length, int(count), 0) for count in some])))
        widths.append(Widths(several, np.array([_flops(sizes, length, 0, int(count)) for count in several])))
    return Costs(widths)


def narrowest(sizes: Dimensions) -> Dimensions:
    """Return the sizes with one head, in the last layer that has any, and nothing else in any layer."""
    last = max(layer for layer, (heads, _) in enumerate(unit_counts(sizes)) if heads)
    heads = tuple((0,) if layer == last else () for layer in range(sizes.layers))
    return replace(sizes, pruned=PrunedShape(heads, (0,) * sizes.layers))


def choose(scores: Sequence[UnitScores], costs: Costs, budget: float) -> Kept:
    """Return what stays if the model may cost `budget`, by the scores of the heads and of the neurons of each layer, in this
    order.

    ValueError: `costs.least` is more.
    """
    if budget < costs.least:
        raise ValueError(f"no shape costs {budget}; the narrowest costs {costs.least}")
    losses = [part.losses(widths.counts) for part, widths in zip(scores, costs.widths, strict=True)]
    counts = choose_widths(losses, costs.widths, budget - costs.fixed, one_of=costs.heads)
    return best_units(scores, counts)


def best_units(scores: Sequence[UnitScores], counts: Sequence[int]) -> Kept:
    """Return what stays for these counts of heads and of neurons in each layer, in the order of the scores."""
    places = [part.kept(count) for part, count in zip(scores, counts, strict=True)]
    return Kept(places[::2], places[1::2])


def unit_counts(sizes: Dimensions) -> list[tuple[int, int]]:
    """Return the numbers of heads and neurons of each layer."""
    if sizes.pruned is None:
        return [(sizes.heads, sizes.intermediate)] * sizes.layers
    return list(zip(map(len, sizes.pruned.heads), sizes.pruned.neurons, strict=True))


def _flops(sizes: Dimensions, length: float, heads: int, neurons: int) -> float:
    """Return the FLOPs of one layer."""
    shape = PrunedShape((tuple(range(heads)),), (neurons,))
    return replace(sizes, layers=1, pruned=shape).layers_flops(length)
