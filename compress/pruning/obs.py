"""Heads and neurons in the order in which a layer can best do without them, and its error after each: the optimal brain surgeon on
groups of inputs (ZipLM, Kurtic et al. 2023, arXiv:2302.04089, §3.1). Forwards alone; no label, no loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..models.features import Batch, layers_of
from ..models.pruned import head_size, layer_part
from .layerwise import READERS, first_inputs, inputs_seen, layer_states, tokens_read
from .repair import DAMPING


@dataclass(frozen=True)
class RemovalOrder:
    """Of one part of a layer. `order`: its units, the first to go first. `errors` [units + 1]: after so many have gone, rising."""

    order: list[int]
    errors: np.ndarray

    def lost(self, counts: np.ndarray) -> np.ndarray:
        """[option]: the error where so many units stay."""
        return self.errors[len(self.order) - counts]

    def kept(self, count: int) -> list[int]:
        """The places, rising, of the units that stay."""
        return sorted(self.order[len(self.order) - count :])


def removal_orders(
    model: Any,
    batches: Iterable[Batch],
    *,
    first_token: bool,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[RemovalOrder]:
    """Of the heads and of the neurons of each layer of `model`, in this order, over the real tokens of padded `batches`; of the last
    layer over the first token's where the head reads no other (`first_token`).

    An error is the squared change of the output matrix's output, the rest of the matrix and its bias refitted, as a share of the
    squares of what goes into the LayerNorm behind it, around each token's mean: what the norm divides by. So those of all parts of
    all layers are comparable.
    """
    layers, found = len(layers_of(model)), list[RemovalOrder]()
    with torch.inference_mode():
        calls = [first_inputs(model, batch) for batch in batches]
        for number in range(layers):
            sums = {units: _Sums() for units in READERS}
            for inputs in calls:
                with inputs_seen(model, number, [part for parts in READERS.values() for part in parts]) as seen:
                    states = layer_states(model, number, inputs)
                rows = tokens_read(inputs, first_token=first_token and number == layers - 1)
                for place, each in enumerate(sums.values()):
                    each.add(seen[2 * place][rows], seen[2 * place + 1][rows])
                inputs.states = states
            for units, each in sums.items():
                weight = layer_part(model, number, READERS[units][0]).weight
                order, errors = removals(weight, each.squares(), head_size(model) if units == "heads" else 1)
                found.append(RemovalOrder(order, errors / each.normed))
            on_progress(number + 1, layers)
    return found


class _Sums:
    """Over tokens, in float64: of a matrix's inputs, and of the squares that the norm behind it divides by (`normed`)."""

    def __init__(self) -> None:
        self._extended = torch.zeros((), dtype=torch.float64)
        self.normed = 0.0

    def add(self, inputs: Float[Tensor, "token in"], normed: Float[Tensor, "token out"]) -> None:
        extended = torch.cat([inputs, inputs.new_ones(len(inputs), 1)], dim=1)
        self._extended = self._extended + (extended.T @ extended).double()
        self.normed += float((normed - normed.mean(1, keepdim=True)).square().sum())

    def squares(self) -> Float[Tensor, "in in"]:
        """Of the inputs around their means, which the bias makes up for; damped as in the repair."""
        summed, count = self._extended[-1, :-1], self._extended[-1, -1]
        centred = self._extended[:-1, :-1] - torch.outer(summed, summed) / count
        diagonal = centred.diagonal()
        return centred + torch.diag(DAMPING * diagonal.mean().clamp_min(1e-12).expand_as(diagonal))


def removals(
    weight: Float[Tensor, "out in"], squares: Float[Tensor, "in in"], size: int
) -> tuple[list[int], np.ndarray]:
    """Units of `size` inputs each, in the order in which they go, and [units + 1] the squared error after each.

    `squares` is H = X Xᵀ, positive definite. Each time that unit S goes of which the rest can make up for most, least in
    ρ_S = tr(W_S ((H⁻¹)_SS)⁻¹ W_Sᵀ); then W and H⁻¹ are those of the rest. Time grows with in³.
    """
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(squares))
    columns = weight.T.double().contiguous()  # [in, out]
    left, order, errors = list(range(len(columns) // size)), list[int](), [0.0]
    while left:
        by_unit, diagonal = columns.view(len(left), size, -1), inverse.unflatten(0, (-1, size)).unflatten(2, (-1, size))
        blocks = torch.linalg.inv(diagonal.diagonal(dim1=0, dim2=2).permute(2, 0, 1))
        losses = ((by_unit @ by_unit.mT) * blocks).sum((1, 2))
        place = int(losses.argmin())
        order.append(left[place])
        errors.append(errors[-1] + float(losses[place]))
        columns, inverse = _without(columns, inverse, slice(place * size, (place + 1) * size), blocks[place])
        left[place] = left[-1]
        left.pop()
    return order, np.array(errors)


def _without(columns: Tensor, inverse: Tensor, gone: slice, block: Tensor) -> tuple[Tensor, Tensor]:
    """Wᵀ and H⁻¹, in place, of the inputs that are left, of which the last take the places of those that go. `block`: ((H⁻¹)_SS)⁻¹."""
    rows = inverse[gone].clone()
    change, fewer = rows.T @ block, len(inverse) - len(rows)
    columns.addmm_(change, columns[gone].clone(), alpha=-1)
    inverse.addmm_(change, rows, alpha=-1)
    for matrix in (inverse, inverse.T, columns):
        matrix[gone] = matrix[fewer:].clone()
    return columns[:fewer], inverse[:fewer, :fewer]
