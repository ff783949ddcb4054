"""`python distil_child.py PEER`: distillation by one library in its own process; a request is a line of JSON.

Runs in the peer's environment. A peer is a module here with
  ENVIRONMENT, PACKAGES   as in child.py
  FILES                   what a user of the library writes: its lines are counted
  distil(case, pad, job)  -> the trained student. `job`: checkpoint folders `teacher` and `student`; files `train`, `dev`,
                          `held_out` and `tuning` with a text and a label per line; `epochs`, `batch_size`, `learning_rate`,
                          `seed`, `threads`; the folder `out`; and `batches`, rows of `train`, for peers that use our batches

Hooks in torch set the limits of the measurement: it starts at the first lookup of word embeddings and ends with an optimizer step, so
reading files and loading models do not count. A peer that continues after distillation is stopped there, and has `student(job)`.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from child import serve
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

_PAD = 0
_WORDS = 1000  # an embedding with at least this many rows is the word embedding


class Distilled(BaseException):
    """Raised to stop ours after distillation: it continues to an export that the others do not make."""


class Meter:
    """CPU seconds (of all threads) and wall-clock seconds at the start and after each optimizer step, and the tokens between."""

    def __init__(self, *, armed: bool) -> None:
        self.armed = armed
        self.clocks: list[tuple[float, float]] = []
        self.real = self.padded = self.examples = 0
        self.start = self.peak_mib = 0.0

    def hear(self) -> None:
        register_module_forward_pre_hook(self._lookup)
        register_optimizer_step_pre_hook(self._begin)
        register_optimizer_step_post_hook(self._step)

    def stage(self, label: str, cached: bool) -> None:
        """Count only the distillation stage of ours, whose teacher answers the tuning split before it."""
        if self.clocks:
            raise Distilled
        self.armed = label.startswith("distill")

    def _lookup(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self.armed or not isinstance(module, torch.nn.Embedding) or module.num_embeddings < _WORDS:
            return
        if not self.clocks:
            self._tick()
        if torch.is_grad_enabled():
            ids = inputs[0]
            self.real += int((ids != _PAD).sum())
            self.padded += ids.numel()
            self.examples += len(ids)

    def _begin(self, optimizer: Any, *_: Any) -> None:
        if len(self.clocks) == 1:
            sums = [p.detach().double().abs().sum().item() for g in optimizer.param_groups for p in g["params"]]
            self.start = sum(sorted(sums))

    def _step(self, optimizer: Any, *_: Any) -> None:
        self._tick()
        self.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

    def _tick(self) -> None:
        self.clocks.append((time.process_time(), time.perf_counter()))


class Quiet:
    """A listener of `compress.run` that passes the stages to the meter."""

    def __init__(self, meter: Meter) -> None:
        self.stage = meter.stage

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


class Server:
    """A server that answers one request at a time."""

    def __init__(self, name: str) -> None:
        self.name = name

    def versions(self) -> dict[str, str]:
        peer = importlib.import_module(self.name)
        return {name: metadata.version(name) for name in peer.PACKAGES}

    def run(self, case: str, pad: str, job: dict[str, Any]) -> dict[str, Any]:
        """Run one training in a fork of this process, with all imports done."""
        read, write = os.pipe()
        if not (child := os.fork()):
            with os.fdopen(write, "w") as answer:
                try:
                    answer.write(json.dumps({"value": self._run(case, pad, job)}))
                except BaseException as error:  # the fork must not continue as if it were the parent
                    answer.write(json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}))
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            reply = json.loads(answer.read() or '{"error": "its process died"}')
        os.waitpid(child, 0)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["value"]

    def _run(self, case: str, pad: str, job: dict[str, Any]) -> dict[str, Any]:
        """Train once and measure; the tokens are those that the student read."""
        torch.set_num_threads(job["threads"])
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(job["seed"])
        peer = importlib.import_module(self.name)
        meter = Meter(armed=not hasattr(peer, "student"))
        meter.hear()
        try:
            student = peer.distil(case, pad, {**job, "listener": Quiet(meter)})
        except Distilled:
            student = peer.student(job)
        meter.armed = False
        score = _accuracy(student, job) if job["score"] else None
        counted = {"real": meter.real, "padded": meter.padded, "examples": meter.examples, "start": meter.start}
        return {**counted, "clocks": meter.clocks, "peak_mib": meter.peak_mib, "score": score}


@torch.no_grad()
def _accuracy(student: Any, job: dict[str, Any]) -> float:
    """Return the accuracy on the tuning rows, in points; every candidate's student is scored by this function."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["teacher"])
    rows = [json.loads(line) for line in Path(job["tuning"]).read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: len(row["text"]))
    right = 0
    student.eval()
    for at in range(0, len(rows), 64):
        part = rows[at : at + 64]
        batch = tokenizer(
            [row["text"] for row in part], padding=True, truncation=True, max_length=128, return_tensors="pt"
        )
        best = student(**batch).logits.argmax(-1).tolist()
        right += sum(student.config.id2label[index] == row["label"] for index, row in zip(best, part, strict=True))
    return 100 * right / len(rows)


if __name__ == "__main__":
    serve(Server(sys.argv[1]))
