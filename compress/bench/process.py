"""The parent's side of one child process: requests, answers, deadlines, and the end of it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..errors import CheckFailed, CompressError
from .operators import Operator

if TYPE_CHECKING:
    from . import Candidate

TIMEOUT_SECONDS = 600.0  # for one answer: loading a large model from a cold disk, or one large batch


class Times(NamedTuple):
    """Milliseconds of one run: by the clock, and of CPU time of the whole process."""

    wall: float
    cpu: float


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

    def load(self) -> tuple[float, str]:
        """Milliseconds from the file to a model that can answer, imports not counted; and what runs it, in words."""
        found = self._ask(do="load", runtime=self.candidate.runtime, path=self._path, threads=self.threads)
        return found["milliseconds"], found["engine"]

    def prepare(self, rows: Sequence[int]) -> None:
        """Nothing is run. CompressError when the model does not take a batch of texts of `rows` tokens."""
        self._ask(do="prepare", rows=list(rows))

    def run(self, rows: Sequence[int]) -> Times:
        """One run of a batch of texts of `rows` tokens each, padded to the longest."""
        return Times(*self._ask(do="run", rows=list(rows)))

    def peak_memory_bytes(self) -> int:
        """Of the whole process so far, all shapes measured."""
        return self._ask(do="peak")

    def rates(self) -> dict[str, float]:
        """See `floor.measured_rates`."""
        return self._ask(do="rates")

    def operators(self, rows: Sequence[int]) -> tuple[int, list[Operator]]:
        """See `operators.operators`, which this runs on the candidate's file."""
        found = self._ask(do="operators", path=self._path, rows=list(rows))
        return found["runs"], [Operator(**operator) for operator in found["operators"]]

    @property
    def _path(self) -> str:
        return str(Path(self.candidate.path).resolve())

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _ask(self, **request: object) -> Any:
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
