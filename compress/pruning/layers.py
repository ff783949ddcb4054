"""Greedy layer pruning (Peer et al. 2021, arXiv:2105.14839, here without training in between): drop one layer after the
other, each time the one whose removal changes the model's answers least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Round:
    """`layers`: the candidates. `divergences`: from the whole model's answers, without each of them. `dropped`: the one
    dropped."""

    layers: tuple[int, ...]
    divergences: tuple[float, ...]

    @property
    def dropped(self) -> int:
        """The layer with the least divergence, the first of equal ones."""
        return self.layers[self.divergences.index(min(self.divergences))]


def rounds_to(
    keep: int,
    layers: int,
    divergence: Callable[[tuple[int, ...]], float],
    *,
    first: bool = False,
    before: Sequence[Round] = (),
) -> Iterator[Round]:
    """Drop layers until `keep` are left, and yield each round as it ends. `divergence`: of a model with only these layers,
    numbered from 0, ascending. `first`: the first layer stays. `before`: known rounds, which are not computed again."""
    left = list(range(layers))
    for known in before:
        left.remove(known.dropped)
    while len(left) > keep:
        candidates = tuple(left[1:] if first else left)
        costs = [divergence(tuple(each for each in left if each != layer)) for layer in candidates]
        this_round = Round(candidates, tuple(costs))
        left.remove(this_round.dropped)
        yield this_round


@contextmanager
def layers_alone(model: Any, kept: Sequence[int]) -> Iterator[None]:
    """While open, `model` has only these of its layers, and its config counts them."""
    from torch import nn

    from ..models.features.named import layers_of

    every = layers_of(model)
    path = next(name for name, module in model.named_modules() if module is every)
    model.set_submodule(path, nn.ModuleList(every[layer] for layer in kept))
    model.config.num_hidden_layers = len(kept)
    try:
        yield
    finally:
        model.set_submodule(path, every)
        model.config.num_hidden_layers = len(every)
