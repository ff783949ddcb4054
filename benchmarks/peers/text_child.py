"""`python text_child.py PEER`: one candidate that takes texts, in its own process; a request is a line of JSON.

Runs in the peer's environment and needs numpy there. A peer is a module here with
  ENVIRONMENT, PACKAGES, VARIANTS     as in child.py
  WAYS                                name -> how texts are batched; the first is the default for the peer's users
  open_texts(variant, model, threads) -> answer(texts, way) -> the probability of the second label of each text
  make(model)                         writes the peer's files for the checkpoint; optional
  part_times(variant, model, text, repeats) -> median microseconds of each part of an answer; only ours has it

`model` is the folder that text_to_answer.py makes.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from child import serve

Answer = Callable[[Sequence[str], str], list[float]]


class TextServer:
    """A server that answers one request at a time; `calls` starts caller threads."""

    def __init__(self, peer: Any) -> None:
        self.peer, self.ways = peer, [*peer.WAYS]
        self.answer: Answer | None = None
        self.texts: list[str] = []

    def versions(self) -> dict[str, str]:
        return {name: metadata.version(name) for name in self.peer.PACKAGES}

    def make(self, model: str) -> None:
        """Write the peer's files for the checkpoint; only some peers have such a function."""
        self.peer.make(Path(model))

    def load(self, variant: str, model: str, threads: int, texts: str) -> None:
        """Open the peer. `texts`: a JSON file with a list of texts."""
        self.texts = json.loads(Path(texts).read_text(encoding="utf-8"))
        self.answer = self.peer.open_texts(variant, Path(model), threads)

    def probabilities(self, count: int) -> list[float]:
        """Answer the first texts one by one."""
        return [self._one(text) for text in self.texts[:count]]

    def many(self, count: int, way: str) -> dict[str, float]:
        """Answer the first texts in one call: seconds (`cpu` is of all threads), and MB of memory before and after."""
        assert self.answer is not None
        before, wall, cpu = _resident_mb(), time.perf_counter(), time.process_time()
        answers = self.answer(self.texts[:count], way)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if len(answers) != count:
            raise RuntimeError(f"{len(answers)} answers to {count} texts")
        return {"wall": wall, "cpu": cpu, "before_mb": before, "after_mb": _resident_mb()}

    def calls(self, callers: int, requests: int) -> dict[str, Any]:
        """Answer `requests` texts one by one, from `callers` threads that each wait for an answer before the next request. Return the
        seconds of each answered request, of all (`wall`, `cpu`), and the errors of the others."""
        seconds: list[float] = []
        raised: list[str] = []
        queue = iter(self.texts[:requests])
        lock = threading.Lock()

        def call() -> None:
            while True:
                with lock:
                    text = next(queue, None)
                if text is None:
                    return
                started = time.perf_counter()
                try:
                    self._one(text)
                except Exception as error:  # whatever a peer raises is counted and reported
                    raised.append(f"{type(error).__name__}: {' '.join(str(error).split())}"[:200])
                else:
                    seconds.append(time.perf_counter() - started)

        threads = [threading.Thread(target=call) for _ in range(callers)]
        wall, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        p50, p99 = np.percentile(seconds, [50, 99]).tolist() if seconds else (None, None)
        counts = {"answered": len(seconds), "failed": len(raised)}
        return {"p50": p50, "p99": p99, "wall": wall, "cpu": cpu, **counts, "raised": raised[:1]}

    def part_times(self, variant: str, model: str, texts: str, words: int, repeats: int) -> dict[str, float]:
        """Time the parts of an answer to the first `words` words of the first text that has as many; `texts` as in `load`."""
        listed = json.loads(Path(texts).read_text(encoding="utf-8"))
        split = next(tokens for text in listed if len(tokens := text.split()) >= words)
        return self.peer.part_times(variant, Path(model), " ".join(split[:words]), repeats)

    def _one(self, text: str) -> float:
        assert self.answer is not None
        return self.answer([text], self.ways[0])[0]


def _resident_mb() -> float:
    """Return the resident memory of this process in MB, on Linux."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1000


if __name__ == "__main__":
    serve(TextServer(importlib.import_module(sys.argv[1])))
