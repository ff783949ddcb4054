"""The side of fault_runs.Forks in the child process: what it imported, its forks have.

Commands are lines of JSON: `[folder, root, harm]` starts a fork and is answered with its process id; a process id is answered
with its exit code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Child = Callable[[Path, Path, dict[str, Any]], int]


def serve(child: Child) -> None:
    """Until standard input ends: `child(folder, root, harm)` in a fork for each command, its answer the fork's exit code."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(_answer(json.loads(line), child), flush=True)


def _answer(command: Any, child: Child) -> int:
    if isinstance(command, int):
        return os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    folder, root, harm = command
    process = os.fork()
    if process == 0:
        os._exit(child(Path(folder), Path(root), harm))
    return process
