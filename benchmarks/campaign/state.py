"""A campaign's state, saved to disk after every step, and its clock."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from compress.files.atomic import write_text
from compress.processes import signals
from compress.processes.children import kill_process

_GRACE = 60.0  # seconds for a stopped step to save its state


class Campaign:
    """A campaign; `steps` maps name -> outcome. Each step runs in its own process, so one that runs out of memory fails alone."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.out = arguments, arguments.out
        self.started = time.monotonic()
        self._path = self.out / "campaign.json"
        self._own_steps = set[str]()
        self.out.mkdir(parents=True, exist_ok=True)
        self.document: dict[str, Any] = {"steps": {}, "seconds": 0.0}
        if self._path.exists():
            self.document = json.loads(self._path.read_text(encoding="utf-8"))
        self._spent = self.document["seconds"]
        self.document["machine"] = hardware()  # the current start's
        self.save()

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        return self.document["steps"]

    @property
    def left(self) -> float:
        """Seconds left."""
        return 60 * self.arguments.minutes - (time.monotonic() - self.started)

    @property
    def complete(self) -> bool:
        """Whether every step that this start requested is done."""
        return all(self.steps[name]["state"] == "done" for name in self._own_steps)

    def save(self) -> None:
        self.document["seconds"] = self._spent + time.monotonic() - self.started
        write_text(self._path, json.dumps(self.document, indent=1) + "\n")

    def step(self, name: str, work: str, what: dict[str, Any], limit: float) -> dict[str, Any] | None:
        """Return the answer of `work` in child.py, run now or before; None if it failed or ran out of `limit` seconds."""
        self._own_steps.add(name)
        outcome = self.steps.get(name)
        if outcome and outcome["state"] == "done" and outcome["what"] == what:
            return outcome["answer"]
        if limit <= 0:
            self.steps[name] = {"state": "no time", "what": what, "seconds": outcome["seconds"] if outcome else 0.0}
            self.save()
            return None
        began = time.monotonic()
        state, answer, message = self._run(name, work, what, limit)
        seconds = time.monotonic() - began + (outcome["seconds"] if outcome and outcome["what"] == what else 0.0)
        self.steps[name] = {"state": state, "what": what, "seconds": seconds, "answer": answer, "message": message}
        self.save()
        print(f"{name}: {state}, {seconds:.0f} s{f': {message}' if message else ''}", file=sys.stderr, flush=True)
        return answer

    def _run(
        self, name: str, work: str, what: dict[str, Any], limit: float
    ) -> tuple[str, dict[str, Any] | None, str | None]:
        stem = name.replace("/", "-").replace(" ", "-")
        answer, log = self.out / "steps" / f"{stem}.json", self.out / "logs" / f"{stem}.log"
        for path in (answer, log):
            path.parent.mkdir(parents=True, exist_ok=True)
        answer.unlink(missing_ok=True)
        child = Path(__file__).with_name("child.py")
        with log.open("a", encoding="utf-8") as lines:
            command = [sys.executable, str(child), work, json.dumps(what), str(answer)]
            code, stopped = _carried_out(command, lines, limit)
        if code == 0:
            return "done", json.loads(answer.read_text(encoding="utf-8")), None
        last = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()][-1:]
        if stopped:
            return "out of time", None, "its state is saved; the same command goes on with it"
        return "failed", None, last[0] if last else f"exit {code}"


def _carried_out(command: list[str], log: IO[bytes] | IO[str], limit: float) -> tuple[int, bool]:
    """Run `command` and return (exit code, whether it was stopped). At the limit it is told to save and stop, and killed after a grace
    period; likewise if this process is interrupted."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    process = None
    try:
        with signals.deferred():  # a signal while the process starts would leave it running
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            return process.wait(limit), False
        except subprocess.TimeoutExpired:
            return _stop(process), True
    except BaseException:
        if process is not None:
            _stop(process)
        raise


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Tell the process to save and stop; return its exit status."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        code = kill_process(process)
        return -signal.SIGKILL if code is None else code


def hardware() -> dict[str, Any]:
    """Return the machine, and the GPU's name, or None if torch finds none."""
    import torch

    from compress.machine import versions
    from compress.provenance import running_code
    from compress.results import Machine

    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    return {
        "machine": Machine.here().model_dump(mode="json"),
        "gpu": gpu,
        "versions": versions(),
        "code": running_code().model_dump(mode="json"),
    }
