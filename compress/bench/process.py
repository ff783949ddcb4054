"""One candidate in a process of its own, as the measuring process sees it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CompressError
from ..processes.worker import Worker, environment
from .operators import Operator
from .spec import Candidate

TIMEOUT_SECONDS = 600.0  # for one answer: loading a large model from a cold disk, or one large batch


class Times(NamedTuple):
    """Milliseconds of one run: by the clock, and of CPU time of the whole process."""

    wall: float
    cpu: float


class Child:
    """A process that holds one candidate. A context manager: on leaving, the process is gone."""

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

    def load(self) -> tuple[float, str]:
        """Milliseconds from the file to a model that can answer, imports not counted; and what runs it, in words."""
        found = self._ask("load", runtime=self.candidate.runtime, path=self._path, threads=self.threads)
        return found["milliseconds"], found["engine"]

    def prepare(self, rows: Sequence[int]) -> None:
        """Nothing is run. CompressError when the model does not take a batch of texts of `rows` tokens."""
        self._ask("prepare", rows=list(rows))

    def warm(self, rows: Sequence[int]) -> None:
        """One untimed run of such a batch as `run` takes."""
        self._ask("warm", rows=list(rows))

    def run(self, rows: Sequence[int]) -> Times:
        """One run of a batch of texts of `rows` tokens each, padded to the longest."""
        return Times(*self._ask("run", rows=list(rows)))

    def peak_memory_bytes(self) -> int:
        """Of the whole process so far, all shapes measured."""
        return self._ask("peak")

    def rates(self) -> dict[str, float]:
        """See `floor.measured_rates`."""
        return self._ask("rates")

    def operators(self, rows: Sequence[int]) -> tuple[int, list[Operator]]:
        """See `operators.operators`, which this runs on the candidate's file."""
        found = self._ask("operators", path=self._path, rows=list(rows))
        return found["runs"], [Operator(**operator) for operator in found["operators"]]

    @property
    def _path(self) -> str:
        return str(Path(self.candidate.path).resolve())

    def _ask(self, do: str, **arguments: object) -> Any:
        try:
            return self.worker.ask(do, **arguments)
        except CompressError as error:
            raise type(error)(f"bench: {self.name}: {error}") from None
