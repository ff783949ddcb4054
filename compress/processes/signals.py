"""Ctrl-C and SIGTERM: stop at once if nothing is at stake, else at the next safe point, after saving."""

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

_ECHO = 5.0  # seconds in which torchrun forwards a Ctrl-C that its processes also get from the terminal
_AGAIN = 0.05  # seconds after which a lost signal is sent again


class _Stop:
    def __init__(self) -> None:
        self.continues = True
        self.requested: int | None = None
        self.deferring = False
        self.since = 0.0

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.deferring and self.requested is None:
            self.requested, self.since = number, time.monotonic()
            return
        if self.deferring and ranks.count() > 1 and time.monotonic() - self.since < _ECHO:
            return
        raise _interruption(number)


def _interruption(number: int, failure: CompressError | None = None) -> Interrupted:
    next_step = "run the same command to continue: it does not repeat finished steps"
    first = f"interrupted; {next_step if _stop.continues else 'the same command starts from the beginning'}"
    return Interrupted("\n".join([first, *([str(failure)] if failure else [])]), number)


_stop = _Stop()


def install(*, continues: bool = True) -> None:
    """Turn SIGINT and SIGTERM into `Interrupted`. `continues`: whether the command keeps finished steps, for the message."""
    _stop.continues = continues
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop.handle)
    sys.unraisablehook = _send_again


def _send_again(lost: sys.UnraisableHookArgs) -> None:
    """Send a signal again if its exception was lost: Python drops what is raised in a finalizer or a callback of the garbage
    collector, so the signal is sent once that is over."""
    if not isinstance(lost.exc_value, Interrupted):
        sys.__unraisablehook__(lost)
        return
    again = threading.Timer(_AGAIN, os.kill, (os.getpid(), lost.exc_value.signal_number))
    again.daemon = True
    again.start()


def interruption_behind(error: BaseException) -> Interrupted | None:
    """Return the `Interrupted` that Python turned into `error`, as it does in the middle of a class statement; None if there
    is none."""
    causes = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return next((each for each in causes if isinstance(each, Interrupted)), None)


@contextmanager
def deferred() -> Iterator[None]:
    """Within, a first signal only sets `requested_signal()`; a second one raises at once. The end raises for a first one, even
    after a `CompressError`: otherwise a search would begin its next trial."""
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
        raise _interruption(waiting, failure) from failure
    if failure is not None:
        raise failure


def requested_signal() -> int | None:
    """Return the number of the signal that waits for a safe point, if any."""
    return _stop.requested
