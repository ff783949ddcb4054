"""What heads and neurons cost, and the shape that a budget leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ..models.dimensions import Dimensions
from ..models.pruned_shape import PrunedShape
from .search import MULTIPLE, Widths, choose_widths, neuron_counts


class UnitScores(Protocol):
    """What one part of a layer loses, its heads or its neurons, on a scale that all parts of the model share."""

    def lost(self, counts: np.ndarray) -> np.ndarray:
        """[option]: where so many units stay; never more for a wider one."""
        ...

    def kept(self, count: int) -> list[int]:
        """The places, rising, of the units that stay where so many do."""
        ...


@dataclass(frozen=True)
class Kept:
    """Of each layer the places, rising, of the heads and neurons that stay."""

    heads: list[list[int]]
    neurons: list[list[int]]


@dataclass(frozen=True)
class Costs:
    """Of each layer two `widths`, what so many heads cost and so many neurons, and `fixed`, what the model costs beside them; in FLOPs,
    milliseconds or bytes."""

    widths: list[Widths]
    fixed: float = 0.0

    @property
    def whole(self) -> float:
        """Of the model before pruning."""
        return self.fixed + sum(float(each.costs[-1]) for each in self.widths)

    @property
    def least(self) -> float:
        """Of one head and 16 neurons in each layer."""
        return self.fixed + sum(float(each.costs[0]) for each in self.widths)

    def of(self, shape: PrunedShape) -> float:
        """Of a model with as many heads and neurons in each layer. KeyError: a width is no option."""
        counts = [count for pair in zip(map(len, shape.heads), shape.neurons, strict=True) for count in pair]
        found = [
            dict(zip(each.counts.tolist(), each.costs.tolist(), strict=True))[count]
            for each, count in zip(self.widths, counts, strict=True)
        ]
        return self.fixed + float(sum(found))


@dataclass(frozen=True)
class MeasuredCosts:
    """Milliseconds or bytes of models of this family's layers, for the model to prune.

    `narrowest`: of the whole model with one head and the fewest neurons in each layer. `heads`, `neurons`: (count, how much more a
    layer with so many costs than with the fewest), rising from the fewest; between them, by a straight line. `last`: the
    same for all heads, and all neurons, of the last layer, of which a graph may compute the first token alone.
    """

    narrowest: float
    heads: tuple[tuple[int, float], ...]
    neurons: tuple[tuple[int, float], ...]
    last: tuple[tuple[int, float], tuple[int, float]]

    def costs(self, sizes: Dimensions) -> Costs:
        """Of a model of these sizes, pruned or not."""
        counts, found = _counts(sizes), []
        for layer, (heads, neurons) in enumerate(counts):
            options = np.arange(1, heads + 1), neuron_counts(neurons)
            for some, measured, whole in zip(options, (self.heads, self.neurons), self.last, strict=True):
                points = (measured[0], whole) if layer == len(counts) - 1 else measured
                where, more = np.array(points, float).T
                more = np.maximum.accumulate(np.maximum(more, 0))
                found.append(Widths(some, np.interp(some, where, more)))
        return Costs(found, self.narrowest)


def flops_costs(sizes: Dimensions, length: float) -> Costs:
    """In FLOPs of the layers for a text of `length` tokens."""
    found = []
    for heads, neurons in _counts(sizes):
        some, several = np.arange(1, heads + 1), neuron_counts(neurons)
        found.append(Widths(some, np.array([_flops(sizes, length, int(count), 0) for count in some])))
        found.append(Widths(several, np.array([_flops(sizes, length, 0, int(count)) for count in several])))
    return Costs(found)


def narrowest(sizes: Dimensions) -> Dimensions:
    """With one head and 16 neurons, or all that there are, in each layer."""
    shape = PrunedShape(((0,),) * sizes.layers, tuple(min(MULTIPLE, each) for _, each in _counts(sizes)))
    return replace(sizes, pruned=shape)


def choose(scores: Sequence[UnitScores], costs: Costs, budget: float) -> Kept:
    """What stays where the model may cost `budget`, by the scores of the heads and of the neurons of each layer, in this order.

    ValueError: `costs.least` is more.
    """
    if budget < costs.least:
        raise ValueError(f"no shape costs {budget}; the narrowest costs {costs.least}")
    losses = [part.lost(widths.counts) for part, widths in zip(scores, costs.widths, strict=True)]
    counts = choose_widths(losses, costs.widths, budget - costs.fixed)
    places = [part.kept(count) for part, count in zip(scores, counts, strict=True)]
    return Kept(places[::2], places[1::2])


def _counts(sizes: Dimensions) -> list[tuple[int, int]]:
    """Heads and neurons that each layer has."""
    if sizes.pruned is None:
        return [(sizes.heads, sizes.intermediate)] * sizes.layers
    return list(zip(map(len, sizes.pruned.heads), sizes.pruned.neurons, strict=True))


def _flops(sizes: Dimensions, length: float, heads: int, neurons: int) -> float:
    """Of one layer."""
    shape = PrunedShape((tuple(range(heads)),), (neurons,))
    return replace(sizes, layers=1, pruned=shape).layers_flops(length)
