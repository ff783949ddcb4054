"""The processes of one command, as `torchrun` or `accelerate launch` starts them: this one's number, and messages among
them.

Messages use their own gloo group with a timeout of 30 days: the first process may export or measure for twenty minutes while
the others wait. Gradients use torch's default group. In a single process, nothing here imports torch, and values are
returned unchanged.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

from ..errors import CheckFailed

T = TypeVar("T")
_PATIENCE = timedelta(days=30)
_ALONE = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1}


class ProcessLost(CheckFailed):
    """Another process of the command has ended early."""


def _launcher_number(name: str) -> int:
    """Return a number that the launcher sets; without a LOCAL_RANK, which accelerate requires, such numbers belong to
    something else."""
    return int(os.environ.get(name, _ALONE[name])) if {"RANK", "LOCAL_RANK"} <= os.environ.keys() else _ALONE[name]


def count() -> int:
    """Return the number of processes of the command, on all nodes."""
    return _launcher_number("WORLD_SIZE")


def rank() -> int:
    """Return the number of this process, from 0."""
    return _launcher_number("RANK")


def is_first() -> bool:
    """Whether this process writes, prints and measures."""
    return rank() == 0


def local_count() -> int:
    """Return the number of processes of the command on this node, which share its cores."""
    return _launcher_number("LOCAL_WORLD_SIZE")


@cache
def _message_group() -> Any:
    """Return the group for messages. The first call, which every process makes at the same point, connects them."""
    import atexit

    import torch.distributed as dist
    from accelerate import PartialState

    PartialState()  # chooses the backend of the device, and gives each process its own device
    atexit.register(leave)
    return dist.new_group(backend="gloo", timeout=_PATIENCE)


def leave() -> None:
    """Close the connections before the interpreter shuts down: a group that outlives it aborts the process."""
    import gc

    import torch.distributed as dist

    _message_group.cache_clear()
    if dist.is_initialized():
        dist.destroy_process_group()
    gc.collect()  # wrapped models hold the default group in reference cycles


@contextmanager
def connected(*, computes: bool = False) -> Iterator[None]:
    """Within, a connection that cannot be made or breaks raises `ProcessLost`, with the reported reason.

    `computes`: torch also computes within, so only an error about a connection counts as one.
    """
    from torch import OutOfMemoryError
    from torch.distributed import DistError

    try:
        yield
    except OutOfMemoryError:
        raise
    except RuntimeError as error:
        if computes and not isinstance(error, DistError) and "gloo" not in str(error):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ProcessLost(
            "the processes of this run cannot talk to each other, or one has ended, see its own message; the same command "
            f"continues from the last checkpoint ({reason})"
        ) from error


def broadcast(value: T) -> T:
    """Return the first process's `value`; those of the others are ignored. It may be a number, a text, or a list or
    dictionary of these: it is sent as JSON, so a tuple arrives as a list. Raises `ProcessLost`."""
    if count() == 1:
        return value
    from torch import tensor, uint8, zeros
    from torch.distributed import broadcast as send

    encoded = _to_bytes(value) if is_first() else None
    with connected():
        size = tensor([0 if encoded is None else len(encoded)])
        send(size, src=0, group=_message_group())
        encoded = zeros(int(size), dtype=uint8) if encoded is None else encoded
        send(encoded, src=0, group=_message_group())
    return _from_bytes(encoded)


def gather(value: T) -> list[T]:
    """Return the values of all processes, in the order of their numbers; of the types that `broadcast` accepts. Raises
    `ProcessLost`."""
    if count() == 1:
        return [value]
    from torch import tensor, uint8, zeros
    from torch.distributed import all_gather

    encoded = _to_bytes(value)
    sizes = [tensor([0]) for _ in range(count())]
    with connected():
        all_gather(sizes, tensor([len(encoded)]), group=_message_group())
        longest = max(int(size) for size in sizes)
        padded = zeros(longest, dtype=uint8)
        padded[: len(encoded)] = encoded
        parts = [zeros(longest, dtype=uint8) for _ in sizes]
        all_gather(parts, padded, group=_message_group())
    return [_from_bytes(part[: int(size)]) for part, size in zip(parts, sizes, strict=True)]


def _to_bytes(value: Any) -> Any:
    from torch import frombuffer, uint8

    return frombuffer(bytearray(json.dumps(value).encode()), dtype=uint8)


def _from_bytes(encoded: Any) -> Any:
    return json.loads(encoded.numpy().tobytes())


def largest(values: Sequence[int]) -> list[int]:
    """Return the elementwise maximum over all processes. Raises `ProcessLost`."""
    if count() == 1:
        return list(values)
    import torch
    from torch.distributed import ReduceOp, all_reduce

    maxima = torch.tensor(values)
    with connected():
        all_reduce(maxima, ReduceOp.MAX, group=_message_group())
    return maxima.tolist()


@contextmanager
def first_process_goes_first() -> Iterator[None]:
    """The first process runs this block before the others enter it."""
    if not is_first():
        broadcast(None)
    yield
    if is_first():
        broadcast(None)


def wait_for_first_process(seconds: float) -> bool:
    """Wait at most `seconds` for the first process to end, and return whether it did.

    A failure of all processes is reported by the first one, and a launcher stops all others when one ends: so these wait.
    """
    from torch import distributed, zeros

    if not distributed.is_initialized():  # before they are connected, all do the same, and so does the first
        time.sleep(1)
        return True
    started = time.monotonic()
    try:
        work = distributed.irecv(zeros(1), src=0, group=_message_group())
        if work is not None:
            work.wait(timedelta(seconds=seconds))
    except RuntimeError:
        return time.monotonic() - started < seconds
    return False
