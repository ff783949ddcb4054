"""How often a process of ours looks for reference cycles."""

from __future__ import annotations

import atexit
import gc

_THRESHOLDS = 10_000, 20, 20  # Python's own: 700 new objects, 10, 10


def collect_rarely() -> None:
    """Let Python's cyclic garbage collector run less often in this process, and not at its end.

    torch and transformers create a million objects when they are imported, nearly all of which stay. By default the collector passes over
    them again and again, and a last time at exit: a good part of what a short command takes.
    """
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)  # what is frozen is not looked at
