"""`python child.py PEER`: one candidate in its own process, controlled by JSON lines.

Runs in the peer's environment and needs numpy there. A peer is a module here with
  ENVIRONMENT  the name of its requirements file; "" for the interpreter that runs the benchmark
  PACKAGES     whose versions are reported
  VARIANTS     name -> what it is, in a line
  NEEDS_BF16   the names of the variants not measured on a CPU without bf16 instructions; optional
  convert(variant, model, out)        from the folder `model` (`checkpoint`/, `plain`/model.onnx) into the folder `out`
  load(variant, out, threads)         -> predict(ids, mask) -> logits, float [sequence, …], several outputs side by side
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from inputs import Batch, calls, checked

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]

# A measurement lasts about this long: the short runs of small cells are repeated.
_FILL_SECONDS, _MOST_REPEATS = 0.05, 20


class Server:
    """A server that answers one request at a time and keeps the inputs of the cells seen."""

    def __init__(self, peer: Any) -> None:
        self.peer = peer
        self.predict: Predict | None = None
        self.prepared: dict[tuple[str, int], list[Batch]] = {}

    def versions(self) -> dict[str, str]:
        return {name: metadata.version(name) for name in self.peer.PACKAGES}

    def convert(self, variant: str, model: str, out: str) -> None:
        self.peer.convert(variant, Path(model), Path(out))

    def load(self, variant: str, out: str, threads: int) -> None:
        self.predict = self.peer.load(variant, Path(out), threads)

    def logits(self) -> list[Any]:
        """Return the logits of the checked batch."""
        assert self.predict is not None
        batch = checked()
        return np.asarray(self.predict(batch.ids, batch.mask), np.float64).tolist()

    def run(self, cell: str, way: int) -> dict[str, float]:
        """Return the `wall` and `cpu` milliseconds to answer the cell once; the CPU time is of all threads."""
        batches = self.prepared.setdefault((cell, way), calls(cell, way))
        first = self._timed(batches)
        repeats = min(_MOST_REPEATS, int(_FILL_SECONDS / max(first)))
        times = [self._timed(batches) for _ in range(repeats)] or [first]
        return {"wall": 1000 * statistics.median(wall for wall, _ in times), "cpu": 1000 * _mean(times)}

    def _timed(self, batches: list[Batch]) -> tuple[float, float]:
        assert self.predict is not None
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            self.predict(batch.ids, batch.mask)
        return time.perf_counter() - wall, time.process_time() - cpu


def _mean(times: list[tuple[float, float]]) -> float:
    """Return the mean of the CPU seconds, because the clock's ticks may be longer than one run."""
    return statistics.fmean(cpu for _, cpu in times)


def _answer(server: Any, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": getattr(server, request.pop("do"))(**request)}
    except Exception as error:  # whatever a peer raises is reported to the parent in one line
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}


def serve(server: Any) -> None:
    """Serve requests, one JSON line each: {"do": …, arguments} calls the method of that name. Ends when the parent closes the pipe or
    dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries' prints must not mix with the answers
    for line in sys.stdin:
        answers.write(json.dumps(_answer(server, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(Server(importlib.import_module(sys.argv[1])))
