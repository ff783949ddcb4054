"""Run models layer by layer over batches, and capture the inputs of parts of each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..models.features.named import Batch, first_layer_inputs, layers_of, model_inputs
from ..models.pruned.model import layer_part

# Units of a layer -> the matrix that reads them, and the norm after its sum with the residual.
READERS = {"heads": ("output", "attention_norm"), "neurons": ("down", "norm")}


@dataclass
class LayerInputs:
    """Inputs of the next layer's forward for a batch, and which of its tokens are real."""

    states: Float[Tensor, "batch length hidden"]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    real: Bool[Tensor, "batch length"]


def first_inputs(model: Any, batch: Batch) -> LayerInputs:
    """Return the inputs of the first layer."""
    (states, *others), keywords = first_layer_inputs(model, model_inputs(model, batch))
    return LayerInputs(states, tuple(map(_share_equal_rows, others)), keywords, batch["attention_mask"].bool())


def _share_equal_rows(value: Any) -> Any:
    """Store rows of a tensor once if they are all equal, such as biases for distances."""
    if isinstance(value, Tensor) and value.ndim > 1 and torch.equal(value, value[:1].expand_as(value)):
        return value[:1].clone().expand_as(value)
    return value


def inputs_at(model: Any, number: int, batch: Batch) -> LayerInputs:
    """Return the inputs of layer `number`, by running those before it."""
    inputs = first_inputs(model, batch)
    for layer in range(number):
        inputs.states = layer_states(model, layer, inputs)
    return inputs


def layer_states(model: Any, number: int, inputs: LayerInputs) -> Float[Tensor, "batch length hidden"]:
    """Return the output of the layer."""
    output = layers_of(model)[number](inputs.states, *inputs.arguments, **inputs.keywords)
    return output[0] if isinstance(output, tuple) else output


def tokens_read(inputs: LayerInputs, *, first_token: bool) -> Bool[Tensor, "batch length"]:
    """Return the mask of the real tokens, or of the first one alone."""
    if not first_token:
        return inputs.real
    chosen = torch.zeros_like(inputs.real)
    chosen[:, 0] = True
    return chosen


class _Recorded(Exception):
    """Raised to skip the rest of a layer."""


@contextmanager
def recorded_inputs(
    model: Any, number: int, parts: Sequence[str], *, no_further: bool = False
) -> Iterator[list[Tensor]]:
    """While open, a run of the layer stores the inputs of its `parts`, in the order given.

    `no_further`: a run ends before the part that comes last in it, and so does the `with` statement.
    """
    part_inputs: list[Any] = [None] * len(parts)

    def keep(place: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            part_inputs[place] = inputs[0]
            if no_further and all(each is not None for each in part_inputs):
                raise _Recorded

        return hook

    handles = [
        layer_part(model, number, part).register_forward_pre_hook(keep(place)) for place, part in enumerate(parts)
    ]
    try:
        yield part_inputs
    except _Recorded:
        pass
    finally:
        for handle in handles:
            handle.remove()
