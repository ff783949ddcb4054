"""A copy of a model without some of its heads and neurons."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..models.families import Family
from ..models.heads import head_of, without_pooler
from ..models.pruned.model import ATTENTION, UNPRUNED, head_size, layer_name, prunable_family, shape_of
from ..models.pruned.shape import FIELD, PrunedShape
from ..models.sentence_encoders.layer_mix import add_mix, learnt_mix
from ..models.usable_classes import usable_class


def without_units(model: Any, heads: Sequence[Sequence[int]], neurons: Sequence[Sequence[int]]) -> Any:
    """Return a copy of `model` with only these `heads` and `neurons` of each layer, by index in ascending order.

    A part that keeps none retains the bias of its output matrix. The copy is on the device of `model`. CompressError: a
    family whose layers cannot be pruned.
    """
    family = prunable_family(model)
    before, size = shape_of(model), head_size(model)
    shape = PrunedShape(
        tuple(tuple(own[head] for head in kept) for own, kept in zip(before.heads, heads, strict=True)),
        tuple(map(len, neurons)),
    )
    kind = getattr(type(model), UNPRUNED, type(model))
    config = copy.deepcopy(model.config)
    _set_shape(config, family, shape)
    pruned = without_pooler(usable_class(kind, config)(config), head_of(model))
    if learnt_mix(model) is not None:
        add_mix(pruned)
    state, device = model.state_dict(), next(model.parameters()).device
    for number, (some_heads, some_neurons) in enumerate(zip(heads, neurons, strict=True)):
        rows, neuron_rows = _unit_rows(some_heads, size).to(device), _unit_rows(some_neurons, 1).to(device)
        for part, kept in (*((part, rows) for part in ATTENTION), ("up", neuron_rows)):
            name = f"{layer_name(model, number)}.{family.layers.parts[part]}"
            for each in ("weight", "bias"):
                _select(state, f"{name}.{each}", kept)
        for part, kept in (("output", rows), ("down", neuron_rows)):
            name = f"{layer_name(model, number)}.{family.layers.parts[part]}.weight"
            state[name] = state[name][:, kept]
    pruned.load_state_dict(state)
    return pruned.to(device).train(model.training)


def _select(state: dict[str, Tensor], name: str, kept: Tensor) -> None:
    """Keep these rows of a weight; delete its entry, if any, when none is kept."""
    if len(kept):
        state[name] = state[name][kept]
    else:
        state.pop(name, None)


def _unit_rows(units: Sequence[int], size: int) -> Tensor:
    """Return the rows of these units in a matrix whose outputs are units, each `size` wide."""
    return (torch.tensor(units, dtype=torch.long)[:, None] * size + torch.arange(size)).flatten()


def _set_shape(config: Any, family: Family, shape: PrunedShape) -> None:
    """Put the shape into the config, in transformers' own way if there is one."""
    vars(config).pop(FIELD, None)
    every = tuple(range(getattr(config, family.own_name("num_attention_heads"))))
    if len(set(shape.neurons)) == 1 and shape.neurons[0] and set(shape.heads) == {every}:
        setattr(config, family.own_name("intermediate_size"), shape.neurons[0])
    else:
        setattr(config, FIELD, shape.field)
