"""The parent's side of one child process: requests and answers as lines of JSON, deadlines, and the end of it."""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from ..errors import CheckFailed, CompressError


class Worker:
    """A child that answers {"do": …, arguments} with {"value": …} or {"error": …}, a line each.

    A context manager: on leaving, the process is gone. `timeout_seconds` is for one answer; `environment` is the
    child's whole one.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float) -> None:
        self.timeout = timeout_seconds
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, text=True
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Worker:
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

    def ask(self, do: str, **arguments: object) -> Any:
        """The answer's value. CompressError: the child refused; CheckFailed: it died, or said nothing for too long."""
        assert self._process.stdin is not None
        request = {"do": do, **arguments}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self.timeout)
        except BrokenPipeError:
            line = ""
        except queue.Empty:
            self._process.kill()  # a late answer would be taken for the next one's
            raise CheckFailed(
                f"no answer in {self.timeout:g} s to {request}; ask for less at once, as smaller shapes"
            ) from None
        if not line:
            raise CheckFailed(self._epitaph())
        answer = json.loads(line)
        if "error" in answer:
            raise CompressError(answer["error"])
        return answer["value"]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

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
        return f"its process died ({how}): {last}"
