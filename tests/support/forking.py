"""The child's side of fault_runs.Forks: forks share the modules that it has imported.

Commands are lines of JSON: `[folder, root, harm]` starts a fork, and the reply is its process id; a process id waits for it, and
the reply is its exit code.
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
    """For each command run `child(folder, root, harm)`, which returns the exit code, in a fork, until standard input ends."""
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
