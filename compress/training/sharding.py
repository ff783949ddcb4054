"""A model whose weights, gradients and moments are split among the processes (FSDP: Zhao et al. 2023, arXiv:2304.11277; the
idea is ZeRO's, Rajbhandari et al. 2020, arXiv:1910.02054), by torch's `fully_shard`.

Each process keeps its part of every tensor. A layer's weights are gathered where a forward or a backward needs them and let go
after it; the gradients are summed on the way back, in every micro-batch. Only the model is split: what the objective learns
beside it is small, and whole everywhere.
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

from ..models.features import layers_of
from ..processes import ranks
from . import sharing
from .parts import is_split, part, whole

# Nothing changes a model's output in place.
warnings.filterwarnings("ignore", message=".*returned a view tensor. An in-place op")


def split(model: nn.Module, place: Callable[[nn.Module], nn.Module], device: torch.device) -> nn.Module:
    """A copy of `model` on `device`, as `place` puts it there, of which each process holds its part of the first one's weights.

    Layers are units of their own; embeddings and heads are one together, which stays
    whole between a forward and its backward, so that a loss can read the table of words. Every process calls it.
    """
    parted: Any = place(copy.deepcopy(model))
    sharing.make_alike([parted])
    mesh = init_device_mesh(device.type, (ranks.count(),))
    for unit in [*layers_of(parted), parted]:
        fully_shard(unit, mesh=mesh)
    # By its class's name transformers knows what a model can give beside its output.
    kind, own = type(parted), type(model)
    kind.__module__ = own.__module__
    kind.__qualname__ = own.__qualname__
    for module in parted.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # losses are weighted by shares: gradients add up
            module.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    return parted


@torch.no_grad()
def gather(parted: nn.Module, into: nn.Module | None) -> None:
    """Fill `into`, a model like `parted` that is whole, with its weights and buffers. Every process calls it, with None
    where it has no use for them."""
    targets = {} if into is None else {**dict(into.named_parameters()), **dict(into.named_buffers())}
    for name, tensor in [*parted.named_parameters(), *parted.named_buffers()]:
        every = whole(tensor)
        if into is not None:
            targets[name].copy_(every)


@torch.no_grad()
def clip(parameters: list[nn.Parameter], most: float) -> Tensor:
    """Scale the gradients, where their norm over all processes is above `most`; that norm, before.

    Where weights are split, every process calls it, and what has no gradient at all, only the zeros that hold layers
    together in the backward, has None again: AdamW leaves it alone, as it would without the split.
    """
    split = [parameter for parameter in parameters if parameter.grad is not None and is_split(parameter.grad)]
    if not split:
        return nn.utils.clip_grad_norm_(parameters, most)
    squares = _squares([part(parameter.grad) for parameter in split if parameter.grad is not None])
    with ranks.connected():
        distributed.all_reduce(squares)
    for parameter, square in zip(split, squares.tolist(), strict=True):
        parameter.grad = parameter.grad if square else None
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    whole_ones = [gradient for gradient in gradients if not is_split(gradient)]
    norm = (squares.sum() + _squares(whole_ones).sum()).sqrt()
    factor = (most / (norm + 1e-6)).clamp(max=1.0)  # as torch has it
    for gradient in gradients:
        part(gradient).mul_(factor)
    return norm


def _squares(gradients: list[Tensor]) -> Tensor:
    """The sum of squares of each, [gradient]."""
    return torch.stack([gradient.float().square().sum() for gradient in gradients]) if gradients else torch.zeros(0)
