"""A child process that serves requests: requests and answers as lines of JSON, timeouts, and termination."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from ..errors import CheckFailed, CompressError
from .children import how_it_ended, kill_process
from .garbage import collect_rarely

_READER_SECONDS = 5.0  # for the rest of a dead child's answers


class Worker:
    """A child that answers {"do": …, arguments} with {"value": …} or {"error": …}, one line each.

    A context manager: on exit, the process and what it started are gone. `timeout_seconds` is for one answer; `environment`
    is the child's complete environment.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float) -> None:
        self.timeout = timeout_seconds
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            text=True,
            process_group=0,
        )
        # Both are pipes, as asked for.
        self._requests, answers = (cast(IO[str], pipe) for pipe in (self._process.stdin, self._process.stdout))
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, args=(answers,), daemon=True)
        self._reader.start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        kill_process(self._process)
        self._reader.join(_READER_SECONDS)  # a process that left the group may hold the answers open for ever
        for pipe in (self._requests, self._log):
            with suppress(BrokenPipeError):  # a request that the dead process did not read
                pipe.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, do: str, **arguments: object) -> Any:
        """Return the value of the answer. CompressError: the child refused. CheckFailed: it died, or did not answer in time."""
        self.send(do, **arguments)
        return self.receive(do)

    def send(self, do: str, **arguments: object) -> None:
        """Send a request without waiting, so that several children work at once; `receive` returns its answer."""
        with suppress(BrokenPipeError):  # the child is dead, as `receive` will report
            self._requests.write(json.dumps({"do": do, **arguments}) + "\n")
            self._requests.flush()

    def receive(self, do: str) -> Any:
        """Return the value of the answer to the oldest request not answered yet, `do`; see `ask`."""
        try:
            line = self._answers.get(timeout=self.timeout)
        except queue.Empty:
            kill_process(self._process)  # a late answer would be taken for the next one's
            raise CheckFailed(
                f"no answer in {self.timeout:g} s to `{do}`; ask for less at once, as smaller shapes, or again on a less busy machine"
            ) from None
        if not line:
            raise CheckFailed(self._describe_death())
        answer = json.loads(line)
        if "error" in answer:
            raise CompressError(answer["error"])
        return answer["value"]

    def _read(self, answers: IO[str]) -> None:
        with answers:
            for line in answers:
                self._answers.put(line)
        self._answers.put("")

    def _describe_death(self) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it closed its answers and hangs
            code = kill_process(self._process)
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        last = lines[-1].strip() if lines else "it said nothing"
        how = "and the kernel did not let go of it" if code is None else how_it_ended(code)
        return f"its process died ({how}): {last}"


def environment(threads: int) -> dict[str, str]:
    """Return a child's environment: the package can be imported from any directory, and torch's waiting threads sleep, as
    ONNX Runtime's do, instead of spinning while the next child runs."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}


def serve(server: object) -> None:
    """Serve requests in the child: {"do": …, arguments} calls the method of that name. Ends when the parent closes the pipe
    or dies."""
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    for line in sys.stdin:
        channel.write(json.dumps(_answer(server, json.loads(line))) + "\n")
        channel.flush()


def _answer(server: object, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": getattr(server, request.pop("do"))(**request)}
    except Exception as error:  # whatever a model's code raises is reported to the parent in one line
        return {"error": " ".join(str(error).split()) or type(error).__name__}
