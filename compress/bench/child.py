"""`python -m compress.bench.child`: a process that holds one model and serves requests in JSON lines."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..processes.worker import serve
from .runners import IMPORTS, RUNNERS, Runner

# A shorter run is repeated, and the second run counts: the cost of waking up the process would show in the first.
_SETTLE_BELOW_MS = 50.0


def peak_memory_bytes() -> int:
    """Return the peak resident set size of this process. On Linux a child inherits ru_maxrss from its parent through exec, so the
    kernel's high-water mark of the new address space (VmHWM) is preferred."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Server:
    """Answers one request at a time, `load` before all others; keeps the model and the prepared inputs of each shape."""

    runner: Runner

    def __init__(self) -> None:
        self.prepared: dict[tuple[int, ...], Callable[[], object]] = {}
        self.ran: set[tuple[int, ...]] = set()

    def imports(self, runtime: str) -> None:
        for module in IMPORTS[runtime]:
            importlib.import_module(module)

    def load(self, runtime: str, path: str, threads: int) -> dict[str, Any]:
        self.imports(runtime)
        start = time.perf_counter()
        self.runner = RUNNERS[runtime](Path(path), threads)
        return {"milliseconds": (time.perf_counter() - start) * 1000, "engine": self.runner.engine}

    def prepare(self, rows: Sequence[int]) -> None:
        """Prepare the inputs. CompressError if the model cannot run them; nothing is run."""
        self.prepared[tuple(rows)] = self.runner.prepare(rows)

    def warm(self, rows: Sequence[int]) -> None:
        """Run once, untimed."""
        self._work(rows)()
        self.ran.add(tuple(rows))

    def run(self, rows: Sequence[int]) -> tuple[float, float]:
        """Return the milliseconds of one run: wall-clock time, and CPU time of this process over all threads.

        A first run for new `rows`, for which a runtime may compile, and any short run is repeated, and the second run counts.
        """
        work = self._work(rows)
        times = _time_call(work)
        if tuple(rows) in self.ran and times[0] >= _SETTLE_BELOW_MS:
            return times
        self.ran.add(tuple(rows))
        return _time_call(work)

    def _work(self, rows: Sequence[int]) -> Callable[[], object]:
        if tuple(rows) not in self.prepared:
            self.prepare(rows)
        return self.prepared[tuple(rows)]

    def peak(self) -> int:
        return peak_memory_bytes()

    def rates(self) -> dict[str, float]:
        from .floor import measured_rates

        return measured_rates()

    def operators(self, path: str, rows: Sequence[int]) -> dict[str, Any]:
        from .operators import operators

        runs, nodes = operators(Path(path), rows)
        return {"runs": runs, "operators": [asdict(operator) for operator in nodes]}


def _time_call(work: Callable[[], object]) -> tuple[float, float]:
    start, busy = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - start) * 1000, (time.process_time() - busy) * 1000


if __name__ == "__main__":
    serve(Server())
