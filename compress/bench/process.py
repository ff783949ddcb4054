"""The parent's side of one child process: requests, answers, deadlines, and the end of it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import CheckFailed, CompressError

if TYPE_CHECKING:
    from . import Candidate

TIMEOUT_SECONDS = 600.0  # for one answer: loading a large model from a cold disk, or one large batch


class Child:
    """A process that holds one candidate. A context manager: on leaving, the process is gone."""

    def __init__(self, candidate: Candidate, threads: int, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.candidate, self.name = candidate, candidate.name
        self.threads, self.timeout = threads, timeout_seconds
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "compress.bench.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_environment(threads),
            text=True,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                pass  # a request that the dead process did not read

    @property
    def pid(self) -> int:
        return self._process.pid

    def load(self) -> float:
        """Milliseconds from the file to a model that can answer; imports are not counted."""
        path = str(Path(self.candidate.path).resolve())
        return self._ask(do="load", runtime=self.candidate.runtime, path=path, threads=self.threads)

    def run(self, batch: int, length: int) -> float:
        """Milliseconds of one run."""
        return self._ask(do="run", batch=batch, length=length)

    def peak_memory_bytes(self) -> int:
        """Of the whole process so far, all shapes measured."""
        return int(self._ask(do="peak"))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _ask(self, **request: object) -> float:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self.timeout)
        except BrokenPipeError:
            line = ""
        except queue.Empty:
            raise CheckFailed(
                f"bench: {self.name}: no answer in {self.timeout:g} s to {request}; measure smaller shapes"
            ) from None
        if not line:
            raise CheckFailed(self._epitaph())
        answer = json.loads(line)
        if "error" in answer:
            raise CompressError(f"bench: {self.name}: {answer['error']}")
        return answer["value"]

    def _epitaph(self) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it closed its answers and hangs
            self._process.kill()
            code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        last = lines[-1].strip() if lines else "it said nothing"
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        return f"bench: {self.name}: its process died ({how}): {last}"


def _environment(threads: int) -> dict[str, str]:
    """The package findable from any directory; torch's waiting threads asleep, as ONNX Runtime's are:
    otherwise they would spin through the next candidate's turn."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
