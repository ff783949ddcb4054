"""Additional processes of a command on this machine, which share its work and end with the process that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from ..errors import CompressError, Interrupted
from . import signals
from .garbage import collect_rarely

_GRACE = 20.0  # seconds for an interrupted training to save its state


class Helpers:
    """`count` processes that each call `work(*arguments)`. A context manager: on exit, none is left.

    If one fails, its current work is taken up by the process that started it, which meets the same error and reports it.
    """

    def __init__(self, work: Callable[..., None], arguments: tuple[Any, ...], count: int) -> None:
        context = multiprocessing.get_context("spawn")  # torch and its threads do not survive a fork
        self._new = [context.Process(target=_run, args=(work, arguments)) for _ in range(count)]
        self._started: list[SpawnProcess] = []
        self._lost: set[int | None] = set()

    def __enter__(self) -> Helpers:
        try:
            for process in self._new:
                self._started.append(process)
                process.start()
        except BaseException:
            self._stop_started(_GRACE, terminate=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._stop_started(_GRACE, terminate=kind is not None)

    def report_lost_helpers(self, notice: Callable[[str], None]) -> None:
        """Report each process that has failed or was killed, once."""
        for process in self._started:
            if process.exitcode and process.pid not in self._lost:
                self._lost.add(process.pid)
                notice(
                    f"a further process has ended with exit code {process.exitcode}; another process takes over its work"
                )

    def _stop_started(self, seconds: float, *, terminate: bool) -> None:
        alive = [process for process in self._started if process.pid is not None]
        if terminate:
            for process in alive:
                process.terminate()
        for process in alive:
            process.join(seconds)
            if process.is_alive():
                process.kill()
                process.join()


def _run(work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    collect_rarely()
    signals.install()
    # Ctrl-C in a terminal reaches all processes, and the first one forwards it: a second signal would interrupt saving.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*arguments)
    except Interrupted as error:
        sys.exit(error.exit_code)
    except CompressError:
        sys.exit(2)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
