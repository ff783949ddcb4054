"""The output matrices of a pruned model fitted to what the whole one gives: least squares, layer by layer, without training.

The target is that of mask tuning (Kwon et al. 2022, arXiv:2204.09656), of the unpruned model: output and residual. In place of a
scale for each unit the whole matrix is fitted, as in ZipLM (Kurtic et al. 2023, arXiv:2302.04089).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..models.features import Batch, first_layer_inputs, layers_of, model_inputs
from ..models.pruned import layer_part

DAMPING = 1e-2  # of the mean diagonal of the normal equations, for weights that few examples say anything of
_PARTS = (
    ("output", "attention_norm"),
    ("down", "norm"),
)  # of a layer: a matrix, and the norm behind its sum with the residual


def repair(
    pruned: Any,
    whole: Any,
    batches: Iterable[Batch],
    *,
    first_token: bool,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Change the output matrices of attention and feed-forward parts of `pruned`, with their biases, in place, so that what goes into
    each LayerNorm is as near to what it is in `whole` as a linear map of the units that are left can make it.

    Layer after layer, each on what the repaired ones before it give, over the real tokens of padded `batches`; of the last layer only
    the first token's where the head reads no other (`first_token`).
    """
    layers = len(layers_of(whole))
    with torch.inference_mode():
        states = [_start(whole, batch) for batch in batches]
        for number in range(layers):
            rows = _first if first_token and number == layers - 1 else _all
            _repair_layer(pruned, whole, number, states, rows)
            on_progress(number + 1, layers)


@dataclass
class _Batch:
    """States [batch, length, hidden] of both models before a layer, what else its forward takes, and the real tokens."""

    own: Tensor
    theirs: Tensor
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    real: Bool[Tensor, "batch length"]


def _start(model: Any, batch: Batch) -> _Batch:
    """What goes into the first layer, which is the same in both models."""
    (states, *others), keywords = first_layer_inputs(model, model_inputs(model, batch))
    return _Batch(states, states, tuple(map(_once, others)), keywords, batch["attention_mask"].bool())


def _once(value: Any) -> Any:
    """Rows of a tensor that are all alike, such as values for distances, are kept once."""
    if isinstance(value, Tensor) and value.ndim > 1 and torch.equal(value, value[:1].expand_as(value)):
        return value[:1].clone().expand_as(value)
    return value


def _first(real: Tensor) -> Tensor:
    chosen = torch.zeros_like(real)
    chosen[:, 0] = True
    return chosen


def _all(real: Tensor) -> Tensor:
    return real


def _repair_layer(
    pruned: Any, whole: Any, number: int, states: Sequence[_Batch], rows: Callable[[Tensor], Tensor]
) -> None:
    goals: list[list[Tensor]] = [[] for _ in _PARTS]
    for batch in states:
        with _seen(whole, number, [norm for _, norm in _PARTS]) as sums:
            batch.theirs = _run(whole, number, batch, batch.theirs)
        for goal, found in zip(goals, sums, strict=True):
            goal.append(found[rows(batch.real)])
    for (matrix, norm), goal in zip(_PARTS, goals, strict=True):
        equations = NormalEquations(DAMPING)
        for batch, wanted in zip(states, goal, strict=True):
            with _seen(pruned, number, [matrix, norm]) as seen:
                _run(pruned, number, batch, batch.own)
            inputs, found = (each[rows(batch.real)] for each in seen)
            equations.add(inputs, wanted - found)
        equations.correct(layer_part(pruned, number, matrix))
    for batch in states:
        batch.own = _run(pruned, number, batch, batch.own)


def _run(model: Any, number: int, batch: _Batch, states: Tensor) -> Tensor:
    output = layers_of(model)[number](states, *batch.arguments, **batch.keywords)
    return output[0] if isinstance(output, tuple) else output


@contextmanager
def _seen(model: Any, number: int, parts: Sequence[str]) -> Iterator[list[Tensor]]:
    """While open, a run of the layer leaves what goes into its `parts`, in their order."""
    found: list[Any] = [None] * len(parts)

    def keep(place: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            found[place] = inputs[0]

        return hook

    handles = [
        layer_part(model, number, part).register_forward_pre_hook(keep(place)) for place, part in enumerate(parts)
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


class NormalEquations:
    """Of the change to a linear layer that explains what is missing from its output, summed over batches in float64."""

    def __init__(self, damping: float = DAMPING) -> None:
        self._damping = damping
        self._squares: Tensor | None = None
        self._products: Tensor | None = None

    def add(self, inputs: Float[Tensor, "token in"], missing: Float[Tensor, "token out"]) -> None:
        """`missing`: what the layer's output for these inputs lacks."""
        extended = torch.cat([inputs, inputs.new_ones(len(inputs), 1)], dim=1)
        squares, products = (extended.T @ extended).double(), (extended.T @ missing).double()
        self._squares = squares if self._squares is None else self._squares + squares
        self._products = products if self._products is None else self._products + products

    def correct(self, linear: nn.Linear) -> None:
        """Add the change to the layer's weight and bias, which damped equations always have."""
        if self._squares is None or self._products is None:
            raise RuntimeError("no inputs")
        diagonal = self._squares.diagonal()
        damped = self._squares + torch.diag(self._damping * diagonal.mean().clamp_min(1e-12).expand_as(diagonal))
        change = torch.cholesky_solve(self._products, torch.linalg.cholesky(damped))
        linear.weight.add_(change[:-1].T.to(linear.weight))
        linear.bias.add_(change[-1].to(linear.bias))
