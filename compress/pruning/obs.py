"""The order in which to remove a layer's heads and neurons, and its error after each removal: the optimal brain surgeon on
groups of inputs (ZipLM, Kurtic et al. 2023, arXiv:2302.04089, §3.1). Uses forward passes only; no labels, no loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from ..models.features.named import Batch, layers_of
from ..models.pruned.model import head_size, layer_part
from .layerwise import READERS, LayerInputs, first_inputs, inputs_at, layer_states, recorded_inputs, tokens_read
from .repair import DAMPING

LEAST_LOST = 1e-3  # least share of a matrix's squared output for a measurable change
PROBE_TOKENS = 4_096  # about this many show how the layers' errors change the last states


@dataclass(frozen=True)
class RemovalOrder:
    """Removals in one part of a layer. `order`: its units, the first to remove first. `errors` [units + 1]: the error after
    each number of removals, ascending."""

    order: list[int]
    errors: np.ndarray

    def losses(self, counts: np.ndarray) -> np.ndarray:
        """Return the error for each count of units that stay, [option]."""
        return self.errors[len(self.order) - counts]

    def kept(self, count: int) -> list[int]:
        """Return the indices, ascending, of the units that stay."""
        return sorted(self.order[len(self.order) - count :])


def removal_orders(
    model: Any,
    batches: Iterable[Batch],
    *,
    first_token: bool,
    further: Callable[[], Iterable[Batch]] = tuple,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[RemovalOrder]:
    """Return the removal orders of the heads and of the neurons of each layer of `model`, in this order.

    They are computed over the real tokens of padded `batches`. If the head reads only the first token (`first_token`), the
    last layer is judged by first tokens alone, also those of `further` texts, which are run one batch at a time.

    An error is the squared change of the output matrix's output, with the rest of the matrix and its bias refitted. Each
    part's errors are scaled so that the error with half of the units is the measured change behind the last layer, in what
    the head reads, as a share of its squares around each token's mean. So the errors of all parts of all layers are
    comparable. ZipLM takes shares of the matrix's own output, and searches for the weight of each layer.
    """
    layers, orders = len(layers_of(model)), list[RemovalOrder]()
    with torch.inference_mode():
        calls = [first_inputs(model, batch) for batch in batches]
        probe = _Probe(model, calls, first_token=first_token)
        for number in range(layers):
            of_first = first_token and number == layers - 1
            more = (inputs_at(model, number, batch) for batch in (further() if of_first else ()))
            sums, after = _read(model, number, calls, more, first_token=of_first)
            for (units, (part, _)), each in zip(READERS.items(), sums, strict=True):
                linear, size = layer_part(model, number, part), head_size(model) if units == "heads" else 1
                if not linear.in_features:
                    orders.append(RemovalOrder([], np.zeros(1)))
                    continue
                order = RemovalOrder(*removals(linear.weight.cpu(), each.squares(), size))
                orders.append(RemovalOrder(order.order, order.errors * probe.scale(number, linear, each, order)))
            for inputs, states in zip(calls, after, strict=True):
                inputs.states = states
            on_progress(number + 1, layers)
    return orders


def _read(
    model: Any, number: int, calls: Sequence[LayerInputs], further: Iterable[LayerInputs], *, first_token: bool
) -> tuple[list[_Sums], list[Float[Tensor, "batch length hidden"]]]:
    """Return the sums of what each output matrix of a layer reads, and the layer's output for `calls`."""
    parts = [part for part, _ in READERS.values()]
    sums = [_Sums() for _ in parts]

    def run(inputs: LayerInputs) -> Float[Tensor, "batch length hidden"]:
        with recorded_inputs(model, number, parts) as seen:
            states = layer_states(model, number, inputs)
        for each, read in zip(sums, seen, strict=True):
            each.add(read[tokens_read(inputs, first_token=first_token)])
        return states

    after = [run(inputs) for inputs in calls]
    for inputs in further:
        run(inputs)
    return sums, after


class _Sums:
    """Sums of a matrix's inputs and their squares over tokens, in float64 on the CPU. They are taken around the first
    batch's means, because float32 loses small variations beside large means."""

    def __init__(self) -> None:
        self._extended = torch.zeros((), dtype=torch.float64)
        self._shift: Tensor | None = None

    def add(self, inputs: Float[Tensor, "token in"]) -> None:
        self._shift = inputs.mean(0) if self._shift is None else self._shift
        extended = torch.cat([inputs - self._shift, inputs.new_ones(len(inputs), 1)], dim=1)
        self._extended = self._extended + (extended.T @ extended).cpu().double()

    def means(self) -> Float[Tensor, " in"]:
        if self._shift is None:
            raise RuntimeError("no inputs")
        return self._shifted_means() + self._shift.cpu().double()

    def varying(self, weight: Float[Tensor, "out in"]) -> float:
        """Return the squares of a matrix's output for these inputs, around its means."""
        return float(((weight @ self._centered_squares()) * weight).sum())

    def squares(self) -> Float[Tensor, "in in"]:
        """Return the squares of the inputs around their means, which the bias absorbs; damped as in the repair."""
        centred = self._centered_squares()
        diagonal = centred.diagonal()
        return centred + torch.diag(DAMPING * diagonal.mean().clamp_min(1e-12).expand_as(diagonal))

    def _centered_squares(self) -> Float[Tensor, "in in"]:
        return self._extended[:-1, :-1] - torch.outer(self._extended[-1, :-1], self._shifted_means())

    def _shifted_means(self) -> Float[Tensor, " in"]:
        return self._extended[-1, :-1] / self._extended[-1, -1]


class _Probe:
    """What the head reads for some of the texts, and how much it changes with a matrix of a layer. Before `scale` is called
    for a layer, `calls` must hold that layer's inputs."""

    def __init__(self, model: Any, calls: Sequence[LayerInputs], *, first_token: bool) -> None:
        tokens = sum(int(inputs.real.sum()) for inputs in calls)
        self._model, self._calls, self._first_token = model, calls[:: max(1, tokens // PROBE_TOKENS)], first_token
        self._whole = self._last_states(0)

    def scale(self, number: int, linear: nn.Linear, sums: _Sums, order: RemovalOrder) -> float:
        """Return the change if the refitted matrix reads half of its units, divided by their error. The count is halved
        further while the removed units contribute nothing."""
        fitted = weight = linear.weight.cpu().double()
        count, lost, whole = len(order.order), 0.0, sums.varying(weight)
        while count and lost <= LEAST_LOST * whole:
            count //= 2
            fitted = _refit_weight(weight, sums.squares(), order.kept(count), len(order.order))
            lost = sums.varying(weight - fitted)
        bias = linear.bias.cpu() + (weight - fitted) @ sums.means()
        changed = fitted.to(linear.weight), bias.to(linear.bias)
        handle = linear.register_forward_hook(lambda module, inputs, output: F.linear(inputs[0], *changed))
        try:
            states = self._last_states(number)
        finally:
            handle.remove()
        around = self._whole - self._whole.mean(1, keepdim=True)
        error = float(order.losses(np.array([count]))[0])
        return float((states - self._whole).square().sum() / around.square().sum()) / error if error else 0.0

    def _last_states(self, number: int) -> Float[Tensor, "token hidden"]:
        """Return what the head reads, computed from this layer on."""
        states = []
        for inputs in map(replace, self._calls):
            for layer in range(number, len(layers_of(self._model))):
                inputs.states = layer_states(self._model, layer, inputs)
            states.append(inputs.states[tokens_read(inputs, first_token=self._first_token)])
        return torch.cat(states)


def _refit_weight(
    weight: Float[Tensor, "out in"], squares: Float[Tensor, "in in"], kept: list[int], units: int
) -> Float[Tensor, "out in"]:
    """Refit a weight by least squares, so that it reads only the units `kept`."""
    size = weight.shape[1] // units
    columns = (torch.tensor(kept, dtype=torch.long)[:, None] * size + torch.arange(size)).flatten()
    fitted = torch.zeros_like(weight)
    fitted[:, columns] = torch.linalg.solve(squares[columns][:, columns], squares[columns] @ weight.T).T
    return fitted


def removals(
    weight: Float[Tensor, "out in"], squares: Float[Tensor, "in in"], size: int
) -> tuple[list[int], np.ndarray]:
    """Return units of `size` inputs each, in order of removal, and the squared error after each removal, [units + 1].

    `squares` is H = X Xᵀ, positive definite. Each step removes the unit S that the rest can best make up for, with the least
    ρ_S = tr(W_S ((H⁻¹)_SS)⁻¹ W_Sᵀ), and updates W and H⁻¹ to those of the rest. Time grows with in³.
    """
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(squares))
    columns = weight.T.double().contiguous()  # [in, out]
    left, order, errors = list(range(len(columns) // size)), list[int](), [0.0]
    while left:
        # ((H⁻¹)_SS)⁻¹ of every unit S: [unit, size, size]
        by_unit_pair = inverse.unflatten(0, (-1, size)).unflatten(2, (-1, size))
        blocks = torch.linalg.inv(by_unit_pair.diagonal(dim1=0, dim2=2).permute(2, 0, 1))
        # ρ_S of every unit: [unit]
        by_unit = columns.view(len(left), size, -1)
        losses = ((by_unit @ by_unit.mT) * blocks).sum((1, 2))
        # Remove the unit with the least; as in `_remove_inputs`, the last unit takes its place.
        index = int(losses.argmin())
        order.append(left[index])
        errors.append(errors[-1] + float(losses[index]))
        columns, inverse = _remove_inputs(columns, inverse, slice(index * size, (index + 1) * size), blocks[index])
        left[index] = left[-1]
        left.pop()
    return order, np.array(errors)


def _remove_inputs(columns: Tensor, inverse: Tensor, gone: slice, block: Tensor) -> tuple[Tensor, Tensor]:
    """Return Wᵀ and H⁻¹ of the inputs that are left, computed in place; the last inputs move to the places of the removed
    ones. `block`: ((H⁻¹)_SS)⁻¹."""
    rows = inverse[gone].clone()
    remaining = len(inverse) - len(rows)
    # Gaussian elimination of the inputs S: subtract (H⁻¹)_:S ((H⁻¹)_SS)⁻¹ times their rows.
    change = rows.T @ block
    columns.addmm_(change, columns[gone].clone(), alpha=-1)
    inverse.addmm_(change, rows, alpha=-1)
    # Overwrite their rows and columns with the last ones.
    for matrix in (inverse, inverse.T, columns):
        matrix[gone] = matrix[remaining:].clone()
    return columns[:remaining], inverse[:remaining, :remaining]
