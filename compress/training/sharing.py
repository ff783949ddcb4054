"""What several processes that train one model do together; alone, each of these is nothing.

Each has the whole model, takes its share of every batch, and adds its gradients to the others' in one sum after the last
backward of a step. torch's DistributedDataParallel would overlap that sum with the backward, but it sees only what goes
through the forward of the module that it wraps: here the objective reads features inside the model, has projections and
a masked-LM head of its own, and quantize_aware replaces forwards. One sum of our own is exact for any of them, serves a
process whose share is empty, and costs what a step's communication costs anyway: 0.4 GB for a BERT-base, once per
optimizer step however many micro-batches it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, distributed, nn

from ..processes import ranks
from .parts import is_split
from .state import trainable

_FAR = 1_000_003  # between the seeds of two processes


def share(batch: np.ndarray, groups: np.ndarray | None = None, rank: int | None = None) -> np.ndarray:
    """The part of `batch`, ids of examples, that is this process's, or the `rank`-th's: disjoint, nothing left out, sizes that differ
    by at most 1.

    Every count-th, since a batch may be sorted by length. Empty where there are more processes than examples. `groups`, the number of
    each example's: whole ones, the next largest to the process that has least.
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
    """Examples in the largest `share` that a process has of it, where examples have no groups."""
    return -(-len(batch) // ranks.count())


def parts(share: np.ndarray, groups: np.ndarray | None, size: int) -> list[np.ndarray]:
    """What of a share goes through a forward each: `size` examples; of `groups` whole ones, as many as fit, but one at least."""
    if groups is None:
        return [share[start : start + size] for start in range(0, len(share), size)]
    found: list[np.ndarray] = []
    for run in _runs(share, groups):
        if found and len(found[-1]) + len(run) <= size:
            found[-1] = np.concatenate([found[-1], run])
        else:
            found.append(run)
    return found


def _runs(batch: np.ndarray, groups: np.ndarray) -> list[np.ndarray]:
    """The examples of each group, which stand side by side."""
    return np.split(batch, np.flatnonzero(np.diff(groups)) + 1) if len(batch) else []


def own_seed(seed: int) -> int:
    """Dropout differs between processes; the first draws as one process alone would."""
    return (seed + ranks.rank() * _FAR) % 2**63


def add_up(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The sum of each over the processes, all in one message; every process gets the same bits.

    They are of one type, and every process has the same ones. Raises `ProcessLost`.
    """
    if ranks.count() == 1:
        return tensors
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    with ranks.connected():
        distributed.all_reduce(flat)
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


def make_alike(modules: Iterable[nn.Module]) -> None:
    """Give every process the first one's weights and buffers, but for those that are split. Raises `ProcessLost`."""
    if ranks.count() == 1:
        return
    with torch.no_grad(), ranks.connected():
        for tensor in (tensor for tensor in trainable(modules).values() if not is_split(tensor)):
            whole = tensor.detach().contiguous()
            distributed.broadcast(whole, src=0)
            tensor.copy_(whole)
