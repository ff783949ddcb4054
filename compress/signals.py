"""Ctrl-C and SIGTERM: at once where nothing is at stake, at the next safe point where state must be saved."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from . import processes
from .errors import Interrupted

_ECHO = 5.0  # seconds in which torchrun passes on a Ctrl-C that its processes have from the terminal as well


class _Stop:
    def __init__(self) -> None:
        self.requested: int | None = None
        self.deferring = False
        self.since = 0.0

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.deferring and self.requested is None:
            self.requested, self.since = number, time.monotonic()
            return
        if self.deferring and processes.count() > 1 and time.monotonic() - self.since < _ECHO:
            return
        raise _interrupted(number)


def _interrupted(number: int) -> Interrupted:
    return Interrupted("interrupted; finished steps are kept, run the same command to continue", number)


_stop = _Stop()


def install() -> None:
    """Turn SIGINT and SIGTERM into `Interrupted`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop.handle)


@contextmanager
def deferred() -> Iterator[None]:
    """Within: a first signal only sets `requested()`; a second one raises at once, and so does the end for a first."""
    _stop.deferring = True
    try:
        yield
    finally:
        _stop.deferring = False
        waiting, _stop.requested = _stop.requested, None
    if waiting is not None:
        raise _interrupted(waiting)


def requested() -> int | None:
    """The number of the signal that waits for a safe point."""
    return _stop.requested
