"""The parent's side of one child process: requests, answers, a deadline, and the end of it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

CHILD = Path(__file__).with_name("child.py")
_SECONDS = 1800.0  # for one answer: converting a large model on a busy core


class PeerError(Exception):
    """Why a peer could not answer, in a line."""


class Child:
    """A process that holds one candidate. A context manager: on leaving, the process is gone."""

    def __init__(self, python: Path, peer: str, threads: int, *, ours: bool) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            [str(python), str(CHILD), peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_variables(python, threads, ours),
            text=True,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                pass  # a request that the dead process did not read

    def ask(self, do: str, **arguments: object) -> Any:
        """The answer of the child's `do`. PeerError: it refused, died, or said nothing for too long."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        deadline = threading.Timer(_SECONDS, self._process.kill)
        deadline.start()
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            deadline.cancel()
        answer = json.loads(line) if line else {"error": self._epitaph()}
        if "error" in answer:
            raise PeerError(f"{do}: {answer['error']}")
        return answer["value"]

    def _epitaph(self) -> str:
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"its process died ({code}): {lines[-1].strip() if lines else 'it said nothing'}"


def _variables(python: Path, threads: int, ours: bool) -> dict[str, str]:
    """Our package for our own candidates alone; the environment's programs first, as when it is activated; threads
    that wait sleep, or they would spin through the next candidate's turn."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(CHILD.parents[2]) if ours else "",
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
