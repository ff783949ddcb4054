"""Tensors that may be split among processes, torch's DTensors, and those that are not: one way to handle both."""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from ..processes import ranks


def is_split(tensor: Tensor) -> bool:
    return isinstance(tensor, DTensor)


def part(tensor: Tensor) -> Tensor:
    """What this process holds of it; all of a tensor that is not split."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """All of it, detached, on its device. Every process calls it for the same tensors in the same order. Raises `ProcessLost`."""
    if not isinstance(tensor, DTensor):
        return tensor.detach()
    with ranks.connected():
        return tensor.full_tensor().detach()


@torch.no_grad()
def put(values: Tensor, into: Tensor) -> None:
    """Fill `into` from `values`, a whole tensor; of a split one, this process's part."""
    into.copy_(like(values, into))


def like(values: Tensor, tensor: Tensor) -> Tensor:
    """`values`, whole, split as `tensor` is, or not at all; each process takes its part of what it has itself."""
    if not isinstance(tensor, DTensor):
        return values
    mesh: Any = tensor.device_mesh
    return distribute_tensor(values.to(tensor.device), mesh, tensor.placements, src_data_rank=None)
