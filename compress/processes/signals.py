"""Ctrl-C and SIGTERM: at once where nothing is at stake, at the next safe point where state must be saved."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..errors import CompressError, Interrupted
from . import ranks

_ECHO = 5.0  # seconds in which torchrun passes on a Ctrl-C that its processes have from the terminal as well
_AGAIN = 0.05  # seconds after which a signal that was lost is sent once more


class _Stop:
    def __init__(self) -> None:
        self.requested: int | None = None
        self.deferring = False
        self.since = 0.0

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.deferring and self.requested is None:
            self.requested, self.since = number, time.monotonic()
            return
        if self.deferring and ranks.count() > 1 and time.monotonic() - self.since < _ECHO:
            return
        raise _interrupted(number)


def _interrupted(number: int, failure: CompressError | None = None) -> Interrupted:
    lines = [
        "interrupted; finished steps are kept, run the same command to continue",
        *([str(failure)] if failure else []),
    ]
    return Interrupted("\n".join(lines), number)


_stop = _Stop()


def install() -> None:
    """Turn SIGINT and SIGTERM into `Interrupted`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop.handle)
    sys.unraisablehook = _send_again


def _send_again(lost: sys.UnraisableHookArgs) -> None:
    """A signal may come in the middle of a finalizer or a callback of the garbage collector, of which Python drops what is raised.
    Such a one is sent again, once that is over."""
    if not isinstance(lost.exc_value, Interrupted):
        sys.__unraisablehook__(lost)
        return
    again = threading.Timer(_AGAIN, os.kill, (os.getpid(), lost.exc_value.signal_number))
    again.daemon = True
    again.start()


def behind(error: BaseException) -> Interrupted | None:
    """The stop that Python turned into `error`, as it does in the middle of a class statement."""
    causes = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return next((each for each in causes if isinstance(each, Interrupted)), None)


@contextmanager
def deferred() -> Iterator[None]:
    """Within: a first signal only sets `requested()`; a second one raises at once, and so does the end for a first, even after a
    `CompressError`: a search would begin its next trial otherwise."""
    _stop.deferring = True
    failure: CompressError | None = None
    try:
        yield
    except CompressError as error:
        failure = error
    finally:
        _stop.deferring = False
        waiting, _stop.requested = _stop.requested, None
    if waiting is not None:
        raise _interrupted(waiting, failure) from failure
    if failure is not None:
        raise failure


def requested() -> int | None:
    """The number of the signal that waits for a safe point."""
    return _stop.requested
