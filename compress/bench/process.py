"""The measuring process's handle on a child process that runs one candidate."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CompressError
from ..processes.worker import Worker, environment
from .operators import Operator
from .spec import Candidate

TIMEOUT_SECONDS = 600.0  # per answer; enough to load a large model from a cold disk, or to run a large batch


class Times(NamedTuple):
    """Milliseconds of one run: wall-clock time, and CPU time of the whole process."""

    wall: float
    cpu: float


class Child:
    """A process that holds one candidate. A context manager, which ends the process on exit."""

    def __init__(self, candidate: Candidate, threads: int, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.candidate, self.name, self.threads = candidate, candidate.name, threads
        command = [sys.executable, "-P", "-m", "compress.bench.child"]
        self.worker = Worker(command, environment(threads), timeout_seconds)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exception: object) -> None:
        self.worker.__exit__(*exception)

    @property
    def pid(self) -> int:
        return self.worker.pid

    def start_imports(self) -> None:
        """Let the process import what its runtime needs, without waiting for it; call `finish_imports` before anything else."""
        self.worker.send("imports", runtime=self.candidate.runtime)

    def finish_imports(self) -> None:
        """Wait for the end of `start_imports`."""
        with self._named_errors():
            self.worker.receive("imports")

    def load(self) -> tuple[float, str]:
        """Load the model; return the milliseconds until it can run, without imports, and the name of the engine."""
        answer = self._ask("load", runtime=self.candidate.runtime, path=self._path, threads=self.threads)
        return answer["milliseconds"], answer["engine"]

    def prepare(self, rows: Sequence[int]) -> None:
        """Prepare a batch of texts of `rows` tokens, without running it. CompressError if the model does not take it."""
        self._ask("prepare", rows=list(rows))

    def warm(self, rows: Sequence[int]) -> None:
        """Run a batch once as `run` does, untimed."""
        self._ask("warm", rows=list(rows))

    def run(self, rows: Sequence[int]) -> Times:
        """Time one run of a batch of texts of `rows` tokens, padded to the longest."""
        return Times(*self._ask("run", rows=list(rows)))

    def peak_memory_bytes(self) -> int:
        """Return the peak of the whole process so far, over all shapes."""
        return self._ask("peak")

    def rates(self) -> dict[str, float]:
        """See `floor.measured_rates`."""
        return self._ask("rates")

    def operators(self, rows: Sequence[int]) -> tuple[int, list[Operator]]:
        """Run `operators.operators` on the candidate's file."""
        answer = self._ask("operators", path=self._path, rows=list(rows))
        return answer["runs"], [Operator(**operator) for operator in answer["operators"]]

    @property
    def _path(self) -> str:
        return str(Path(self.candidate.path).resolve())

    def _ask(self, do: str, **arguments: object) -> Any:
        with self._named_errors():
            return self.worker.ask(do, **arguments)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Say in errors which candidate they are about."""
        try:
            yield
        except CompressError as error:
            raise type(error)(f"bench: {self.name}: {error}") from None
