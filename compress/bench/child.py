"""`python -m compress.bench.child`: one model in a process of its own, told what to do by JSON lines.

Imports onnxruntime and numpy only, unless the model is torch's: peak memory is the model's, not ours.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ..errors import CompressError

# Above this a run's own work hides the cost of waking up; below, one untimed run goes first.
_SETTLE_BELOW_MS = 50.0
# (batch, length) -> a function that runs the model once on fixed inputs of that shape
Runner = Callable[[int, int], Callable[[], object]]


def token_ids(batch: int, length: int, vocabulary: int) -> np.ndarray:
    """Random ids, int64 [batch, length]: rows of the embedding table all over, as real text reads them."""
    return np.random.default_rng(0).integers(0, vocabulary, (batch, length))


def onnx_runner(path: Path, threads: int) -> Runner:
    from ..sessions import open_session

    session = open_session(path, threads)
    known = session.get_modelmeta().custom_metadata_map
    names = [value.name for value in session.get_inputs()]

    def prepare(batch: int, length: int) -> Callable[[], object]:
        longest = int(known.get("max_length", length))
        if length > longest:
            raise CompressError(f"{path}: takes at most {longest} tokens, asked for {length}; measure shorter shapes")
        ids = token_ids(batch, length, int(known.get("vocab_size", 100)))
        full = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        missing = sorted(set(names) - set(full))
        if missing:
            raise CompressError(f"{path}: expected the inputs {sorted(full)}, found also {missing}")
        feed = {name: full[name] for name in names}
        return lambda: session.run(None, feed)

    return prepare


def torch_runner(path: Path, threads: int) -> Runner:
    """The checkpoint in eager fp32, as most people run it before any of this."""
    import torch
    from transformers import AutoModelForSequenceClassification
    from transformers.utils import logging

    from ..models import partial_albert  # noqa: F401 - makes its classes known

    logging.disable_progress_bar()
    torch.set_num_threads(threads)
    model = AutoModelForSequenceClassification.from_pretrained(
        path, attn_implementation="eager", dtype=torch.float32, local_files_only=True, use_safetensors=True
    ).eval()

    def prepare(batch: int, length: int) -> Callable[[], object]:
        ids = torch.from_numpy(token_ids(batch, length, model.config.vocab_size))
        mask = torch.ones_like(ids)

        def run() -> object:
            with torch.inference_mode():
                return model(input_ids=ids, attention_mask=mask)

        return run

    return prepare


RUNNERS: dict[str, Callable[[Path, int], Runner]] = {"onnx": onnx_runner, "torch": torch_runner}
# Imported before the clock of `load` starts: a user pays for it once per process, not per model.
IMPORTS = {
    "onnx": ("onnxruntime",),
    "torch": ("torch", "transformers.models.auto.modeling_auto", "compress.models.partial_albert"),
}


def peak_memory_bytes() -> int:
    """Largest resident set of this process. ru_maxrss is inherited from the parent through exec on Linux,
    so the kernel's high-water mark of the new address space comes first."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Server:
    """Answers one request at a time; keeps the model and the inputs of the shapes seen."""

    def __init__(self) -> None:
        self.runner: Runner | None = None
        self.prepared: dict[tuple[int, int], Callable[[], object]] = {}

    def load(self, runtime: str, path: str, threads: int) -> float:
        for module in IMPORTS[runtime]:
            importlib.import_module(module)
        start = time.perf_counter()
        self.runner = RUNNERS[runtime](Path(path), threads)
        return (time.perf_counter() - start) * 1000

    def run(self, batch: int, length: int) -> float:
        """Milliseconds of one run."""
        if (batch, length) not in self.prepared:
            assert self.runner is not None
            self.prepared[batch, length] = self.runner(batch, length)
        work = self.prepared[batch, length]
        elapsed = _timed(work)
        return _timed(work) if elapsed < _SETTLE_BELOW_MS else elapsed

    def peak(self) -> int:
        return peak_memory_bytes()


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def _answer(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": getattr(server, request.pop("do"))(**request)}
    except Exception as error:  # whatever a model's code raises is reported to the parent in one line
        return {"error": " ".join(str(error).split()) or type(error).__name__}


def main(requests: TextIO, answers: TextIO) -> None:
    server = Server()
    for line in requests:  # ends when the parent closes the pipe, also by dying
        answers.write(json.dumps(_answer(server, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    main(sys.stdin, channel)
