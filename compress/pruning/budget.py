"""What heads and neurons cost, and the shape that a budget leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..models.dimensions import Dimensions
from ..models.pruned_shape import PrunedShape
from .scores import LayerGradients, importance
from .search import Widths, choose_widths, neuron_counts, rearranged


@dataclass(frozen=True)
class Kept:
    """Of each layer the places, rising, of the heads and neurons that stay."""

    heads: list[list[int]]
    neurons: list[list[int]]


def flops_widths(sizes: Dimensions, length: float) -> list[Widths]:
    """Of each layer two: what so many heads cost, and so many neurons, in FLOPs of a text of `length` tokens."""
    found = []
    for heads, neurons in _counts(sizes):
        some, several = np.arange(1, heads + 1), neuron_counts(neurons)
        found.append(Widths(some, np.array([_flops(sizes, length, int(count), 0) for count in some])))
        found.append(Widths(several, np.array([_flops(sizes, length, 0, int(count)) for count in several])))
    return found


def least_share(sizes: Dimensions, length: float) -> float:
    """Of the layers' FLOPs that one head and 16 neurons in each layer cost."""
    widths = flops_widths(sizes, length)
    return sum(each.costs[0] for each in widths) / sum(each.costs[-1] for each in widths)


def choose(gradients: Sequence[LayerGradients], sizes: Dimensions, *, length: float, share: float) -> Kept:
    """What stays at `share` of the FLOPs of the layers for texts of `length` tokens, by the gradients of masks of each layer.

    ValueError: `least_share` is more.
    """
    widths = flops_widths(sizes, length)
    parts = [part for layer in gradients for part in (layer.heads, layer.neurons)]
    budget = share * sum(float(each.costs[-1]) for each in widths)
    counts = choose_widths([importance(part).numpy() for part in parts], widths, budget)
    if counts is None:
        raise ValueError(f"no shape costs {share} of the FLOPs")
    places = [rearranged(part.numpy(), count) for part, count in zip(parts, counts, strict=True)]
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
