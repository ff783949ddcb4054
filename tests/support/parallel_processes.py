"""Groups of processes that train together, as the tests start them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__)
CHILD = str(HERE.with_name("parallel_child.py"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[2]), "HF_HUB_OFFLINE": "1"}


def torchrun(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run two processes with torch's own launcher."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
    return subprocess.run(
        [*command, *arguments], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120
    )


class Processes:
    """Groups of processes, forked from one that has imported torch."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def run(self, scenario: str, folder: Path, count: int = 2, **options: Any) -> list[int]:
        """Return the exit codes by rank."""
        folder.mkdir(exist_ok=True)
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([scenario, str(folder), count, options]) + "\n")
        self._server.stdin.flush()
        return json.loads(self._line())

    def close(self) -> None:
        self._server.communicate()


def said(folder: Path) -> list[str]:
    """Return the lines that all processes printed."""
    return [line for path in sorted(folder.glob("said-*")) for line in path.read_text().splitlines()]
