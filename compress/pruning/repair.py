"""Fit the output matrices of a pruned model to the outputs of the whole one: least squares, layer by layer, without
training.

The target is that of mask tuning (Kwon et al. 2022, arXiv:2204.09656, §4.4), from the unpruned model: output and residual.
The whole matrix is fitted, as in ZipLM (Kurtic et al. 2023, arXiv:2302.04089).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..models.features.named import Batch, layers_of
from ..models.pruned.model import layer_part
from .layerwise import READERS, LayerInputs, first_inputs, inputs_at, layer_states, recorded_inputs, tokens_read

DAMPING = 1e-2  # relative to the mean diagonal of the normal equations, for weights that few examples determine


def repair(
    pruned: Any,
    whole: Any,
    batches: Iterable[Batch],
    *,
    first_token: bool,
    further: Callable[[], Iterable[Batch]] = tuple,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Refit the output matrices and biases of the attention and feed-forward parts of `pruned` in place.

    The input of each LayerNorm becomes as close to that in `whole` as a linear map of the remaining units can make it. If no
    unit remains, the bias is fitted.

    Layers are fitted in order, each on the outputs of the repaired ones before it, over the real tokens of padded `batches`;
    the last layer only on the first token, if the head reads no other (`first_token`). Each text then gives one token, so
    `further` texts are used there too. The states of `batches` are held in memory; `further` returns its batches anew on
    each call, and they are run through the models one at a time.
    """
    layers = len(layers_of(whole))
    with torch.inference_mode():
        whole_inputs = [first_inputs(whole, batch) for batch in batches]
        pruned_inputs = [replace(each) for each in whole_inputs]  # the same in both models
        for number in range(layers):
            of_first = first_token and number == layers - 1
            more = further if of_first else tuple
            inputs = _Inputs(pruned, number, pruned_inputs, more), _Inputs(whole, number, whole_inputs, more)
            _repair_layer(*inputs, first_token=of_first)
            on_progress(number + 1, layers)


@dataclass(frozen=True)
class _Inputs:
    """Inputs of a layer of a model: those held for some batches, and for `further` ones those computed from the first layer
    on."""

    model: Any
    number: int
    held: Sequence[LayerInputs]
    further: Callable[[], Iterable[Batch]]

    def __iter__(self) -> Iterator[LayerInputs]:
        yield from self.held
        for batch in self.further():
            yield inputs_at(self.model, self.number, batch)


def _repair_layer(pruned_inputs: _Inputs, whole_inputs: _Inputs, *, first_token: bool) -> None:
    pruned, whole, number = pruned_inputs.model, whole_inputs.model, pruned_inputs.number
    goals: list[list[Tensor]] = [[] for _ in READERS]
    for inputs in whole_inputs:
        with recorded_inputs(whole, number, [norm for _, norm in READERS.values()]) as sums:
            inputs.states = layer_states(whole, number, inputs)
        for goal, norm_inputs in zip(goals, sums, strict=True):
            goal.append(norm_inputs[tokens_read(inputs, first_token=first_token)])
    for (matrix, norm), goal in zip(READERS.values(), goals, strict=True):
        equations, linear = NormalEquations(DAMPING), layer_part(pruned, number, matrix)
        for inputs, wanted in zip(pruned_inputs, goal, strict=True):
            with recorded_inputs(pruned, number, [matrix, norm], no_further=True) as seen:
                layer_states(pruned, number, inputs)
            read, norm_inputs = (each[tokens_read(inputs, first_token=first_token)] for each in seen)
            equations.add(read, wanted - norm_inputs)
        equations.correct(linear)
    for inputs in pruned_inputs.held:
        inputs.states = layer_states(pruned, number, inputs)


class NormalEquations:
    """Normal equations of the change to a linear layer that supplies what its output lacks, summed over batches in float64
    on the CPU."""

    def __init__(self, damping: float = DAMPING) -> None:
        self._damping = damping
        self._squares: Tensor | None = None
        self._products: Tensor | None = None

    def add(self, inputs: Float[Tensor, "token in"], missing: Float[Tensor, "token out"]) -> None:
        """Add inputs. `missing`: what the layer's output for them lacks."""
        extended = torch.cat([inputs, inputs.new_ones(len(inputs), 1)], dim=1)
        squares, products = ((extended.T @ each).cpu().double() for each in (extended, missing))
        self._squares = squares if self._squares is None else self._squares + squares
        self._products = products if self._products is None else self._products + products

    def correct(self, linear: nn.Linear) -> None:
        """Add the solution of the damped equations, which always have one, to the layer's weight and bias."""
        if self._squares is None or self._products is None:
            raise RuntimeError("no inputs")
        diagonal = self._squares.diagonal()
        damped = self._squares + torch.diag(self._damping * diagonal.mean().clamp_min(1e-12).expand_as(diagonal))
        change = torch.cholesky_solve(self._products, torch.linalg.cholesky(damped))
        linear.weight.add_(change[:-1].T.to(linear.weight))
        linear.bias.add_(change[-1].to(linear.bias))
