"""Communication between processes that train one model; for a single process, each function does nothing.

Each process has the whole model, takes its share of every batch, and adds its gradients to the others' in one sum after the last backward
of a step. torch's DistributedDataParallel would overlap that sum with the backward, but it sees only the forward of the module that it
wraps: here the objective reads features inside the model and has projections and a masked-LM head of its own, and quantize_aware replaces
forwards. A separate sum is exact for all of these, serves a process whose share is empty, and has the minimal cost: 0.4 GB for a BERT-base,
once per optimizer step, whatever the number of micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, distributed, nn

from ..processes import ranks
from .sharded_tensors import is_sharded
from .state import trainable

_FAR = 1_000_003  # difference between the seeds of two processes


def share(batch: np.ndarray, groups: np.ndarray | None = None, rank: int | None = None) -> np.ndarray:
    """Return this process's part of `batch` (ids of examples), or that of process `rank`: disjoint, complete, with sizes that differ by at
    most 1.

    It takes every count-th example, since a batch may be sorted by length. Empty if there are more processes than examples. With `groups`,
    each example's group number, groups stay whole: the largest remaining one goes to the process with the fewest examples.
    """
    rank, count = ranks.rank() if rank is None else rank, ranks.count()
    if groups is None or count == 1:
        return batch[rank::count]
    runs = sorted(_runs(batch, groups), key=len, reverse=True)  # stable: the same in every process
    shares: list[list[np.ndarray]] = [[] for _ in range(count)]
    for run in runs:
        min(shares, key=lambda own: sum(map(len, own))).append(run)
    return np.concatenate([batch[:0], *shares[rank]])


def largest_share(batch: np.ndarray) -> int:
    """Return the size of the largest `share` of `batch`, for examples without groups."""
    return -(-len(batch) // ranks.count())


def split_share(share: np.ndarray, groups: np.ndarray | None, size: int) -> list[np.ndarray]:
    """Return the examples of each forward: `size` examples; with `groups`, as many whole ones as fit, but at least one."""
    if groups is None:
        return [share[start : start + size] for start in range(0, len(share), size)]
    forwards: list[np.ndarray] = []
    for run in _runs(share, groups):
        if forwards and len(forwards[-1]) + len(run) <= size:
            forwards[-1] = np.concatenate([forwards[-1], run])
        else:
            forwards.append(run)
    return forwards


def _runs(batch: np.ndarray, groups: np.ndarray) -> list[np.ndarray]:
    """Return the examples of each group; members are adjacent."""
    return np.split(batch, np.flatnonzero(np.diff(groups)) + 1) if len(batch) else []


def own_seed(seed: int) -> int:
    """Return this process's seed: dropout differs between processes, and the first draws like a single process."""
    return (seed + ranks.rank() * _FAR) % 2**63


def sum_over_processes(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return each tensor's sum over the processes, computed in one message; every process gets the same bits.

    All have one dtype, and every process passes the same ones. Raises `ProcessLost`.
    """
    if ranks.count() == 1:
        return tensors
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    with ranks.connected():
        distributed.all_reduce(flat)
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


def broadcast_weights(modules: Iterable[nn.Module]) -> None:
    """Give every process the first one's weights and buffers, except sharded ones. Raises `ProcessLost`."""
    if ranks.count() == 1:
        return
    with torch.no_grad(), ranks.connected():
        for tensor in (tensor for tensor in trainable(modules).values() if not is_sharded(tensor)):
            whole = tensor.detach().contiguous()
            distributed.broadcast(whole, src=0)
            tensor.copy_(whole)
