"""One interface to sharded tensors (torch's DTensors) and ordinary ones."""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from ..processes import ranks


def is_sharded(tensor: Tensor) -> bool:
    return isinstance(tensor, DTensor)


def local_part(tensor: Tensor) -> Tensor:
    """Return this process's shard; the whole tensor if it is not sharded."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def full_tensor(tensor: Tensor) -> Tensor:
    """Return the whole tensor, detached, on its device. Every process must call it for the same tensors in the same order. Raises
    `ProcessLost`."""
    if not isinstance(tensor, DTensor):
        return tensor.detach()
    with ranks.connected():
        return tensor.full_tensor().detach()


@torch.no_grad()
def fill_tensor(values: Tensor, into: Tensor) -> None:
    """Fill `into` from `values`, a whole tensor; if sharded, fill this process's shard."""
    into.copy_(shard_like(values, into))


def shard_like(values: Tensor, tensor: Tensor) -> Tensor:
    """Return `values`, a whole tensor, sharded like `tensor`, if it is; each process takes its shard from its own copy."""
    if not isinstance(tensor, DTensor):
        return values
    mesh: Any = tensor.device_mesh
    return distribute_tensor(values.to(tensor.device), mesh, tensor.placements, src_data_rank=None)
