"""Settings that all threads of a process share, such as torch's random state: one thread changes them at a time, and they are restored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_alone = threading.RLock()
_restore: dict[str, Callable[[], None]] = {}
_depth = 0


@contextmanager
def exclusive() -> Iterator[None]:
    """Other threads wait here until this one is done: in between, two runs would draw from one random state. The end restores what was
    named with `restore_at_end`; a nested use leaves that to the outer one."""
    global _depth
    with _alone:
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
            while not _depth and _restore:
                _restore.popitem()[1]()


def restore_at_end(name: str, read: Callable[[], Callable[[], None]]) -> None:
    """Call `read` before the settings `name` are changed for the first time within `exclusive`, and at its end what it returned."""
    if _depth and name not in _restore:
        _restore[name] = read()


def use_threads(threads: int) -> None:
    """Set the number of torch's threads."""
    import torch

    restore_at_end("torch", _torch_state)
    torch.set_num_threads(threads)


def _torch_state() -> Callable[[], None]:
    """Return a function that restores torch's number of threads and random states."""
    import torch

    threads, state = torch.get_num_threads(), torch.get_rng_state()
    of_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def restore() -> None:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
        if of_gpus:
            torch.cuda.set_rng_state_all(of_gpus)

    return restore
