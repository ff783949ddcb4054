"""Which layers of a trained model its answers can best do without: one after the other the one that costs the least goes (greedy layer
pruning, Peer et al. 2021, arXiv:2105.14839, here without training in between)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Round:
    """`layers`: those that might go; `divergences`: of the whole model's answers, without each of them; `dropped`: the one that went."""

    layers: tuple[int, ...]
    divergences: tuple[float, ...]

    @property
    def dropped(self) -> int:
        """Of equals the first."""
        return self.layers[self.divergences.index(min(self.divergences))]


def rounds_to(
    keep: int,
    layers: int,
    divergence: Callable[[tuple[int, ...]], float],
    *,
    first: bool = False,
    before: Sequence[Round] = (),
) -> Iterator[Round]:
    """Until `keep` of so many `layers` are left, each round as it ends. `divergence`: of a model with these layers alone, by their numbers
    from 0, rising. `first`: the first layer stays. `before`: rounds that are known already, which are not computed again."""
    left = list(range(layers))
    for known in before:
        left.remove(known.dropped)
    while len(left) > keep:
        candidates = tuple(left[1:] if first else left)
        costs = [divergence(tuple(each for each in left if each != layer)) for layer in candidates]
        found = Round(candidates, tuple(costs))
        left.remove(found.dropped)
        yield found


@contextmanager
def layers_alone(model: Any, kept: Sequence[int]) -> Iterator[None]:
    """While open, `model` has these of its layers and no others, and its config counts them."""
    from torch import nn

    from ..models.features import layers_of

    every = layers_of(model)
    path = next(name for name, module in model.named_modules() if module is every)
    model.set_submodule(path, nn.ModuleList(every[layer] for layer in kept))
    model.config.num_hidden_layers = len(kept)
    try:
        yield
    finally:
        model.set_submodule(path, every)
        model.config.num_hidden_layers = len(every)
