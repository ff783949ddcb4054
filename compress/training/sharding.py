"""Shard a model's weights, gradients and moments among processes (FSDP: Zhao et al. 2023, arXiv:2304.11277; the idea is ZeRO's, Rajbhandari
et al. 2020, arXiv:1910.02054), with torch's `fully_shard`.

Each process keeps its shard of every tensor. A layer's weights are gathered when a forward or backward needs them and freed after it;
gradients are summed in every backward. Only the model is sharded: what the objective learns besides it is small, and replicated.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from ..models.features.named import layers_of
from ..processes import ranks
from . import data_parallel
from .sharded_tensors import full_tensor, is_sharded, local_part

# Harmless: nothing changes a model's output in place.
warnings.filterwarnings("ignore", message=".*returned a view tensor. An in-place op")


def shard_model(model: nn.Module, place: Callable[[nn.Module], nn.Module], device: torch.device) -> nn.Module:
    """Return a copy of `model` on `device`, placed by `place`, in which each process holds its shard of the first process's weights.

    Each layer is a unit. Embeddings and heads are one unit, which stays gathered between a forward and its backward, so that a loss can
    read the word table. Every process must call it.
    """
    shards: Any = place(copy.deepcopy(model))
    data_parallel.broadcast_weights([shards])
    mesh = init_device_mesh(device.type, (ranks.count(),))
    for unit in [*layers_of(shards), shards]:
        fully_shard(unit, mesh=mesh)
    # transformers looks up a model's additional outputs by its class name.
    kind, own = type(shards), type(model)
    kind.__module__ = own.__module__
    kind.__qualname__ = own.__qualname__
    for module in shards.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # losses are weighted by shares, so gradients are summed
            module.set_force_sum_reduction_for_comms(True)  # the only reduction that gloo supports
    return shards


@torch.no_grad()
def gather(shards: nn.Module, into: nn.Module | None) -> None:
    """Fill `into`, an unsharded model like `shards`, with its weights and buffers. Every process must call it, with None if it does not
    need them."""
    targets = {} if into is None else {**dict(into.named_parameters()), **dict(into.named_buffers())}
    for name, tensor in [*shards.named_parameters(), *shards.named_buffers()]:
        every = full_tensor(tensor)
        if into is not None:
            targets[name].copy_(every)


@torch.no_grad()
def clip(parameters: list[nn.Parameter], most: float) -> Tensor:
    """Scale the gradients if their norm over all processes is above `most`; return the norm before scaling.

    With sharded weights, every process must call it, and gradients that are all zeros, which only result from keeping layers connected in
    the backward, become None: AdamW then leaves these parameters alone, as without sharding.
    """
    sharded = [parameter for parameter in parameters if parameter.grad is not None and is_sharded(parameter.grad)]
    if not sharded:
        return nn.utils.clip_grad_norm_(parameters, most)
    squares = _squares([local_part(parameter.grad) for parameter in sharded if parameter.grad is not None])
    with ranks.connected():
        distributed.all_reduce(squares)
    for parameter, square in zip(sharded, squares.tolist(), strict=True):
        parameter.grad = parameter.grad if square else None
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    unsharded = [gradient for gradient in gradients if not is_sharded(gradient)]
    norm = (squares.sum() + _squares(unsharded).sum()).sqrt()
    factor = (most / (norm + 1e-6)).clamp(max=1.0)  # as in torch
    for gradient in gradients:
        local_part(gradient).mul_(factor)
    return norm


def _squares(gradients: list[Tensor]) -> Tensor:
    """Return the sum of squares of each, [gradient]."""
    return torch.stack([gradient.float().square().sum() for gradient in gradients]) if gradients else torch.zeros(0)
