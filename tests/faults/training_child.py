"""Run as a child process by fault_runs: imports torch once, then forks a process per run and waits for it.

Commands are lines of JSON: `[work folder, root, harm]` starts a run of the folder's recipe, up to
the trained student, and is answered with its process id; a process id is answered with its exit code.
`harm` may have: `touch`, after how many touches of the store SIGKILL comes; `signal` and `step`,
the signal that comes in the run's `step`-th step; `hold`, a file to wait for in the third step.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
from store_child import kill_at
from transformers import AutoModelForSequenceClassification, BertForSequenceClassification
from transformers import DistilBertForSequenceClassification as Student

from compress import objective, signals, training
from compress.errors import CompressError, Interrupted
from compress.models import predict, students
from compress.pipeline import Listener, Request, plan_all, run, teaching
from compress.pipeline.context import Context
from compress.store import Store

IMPORTED = (AutoModelForSequenceClassification, BertForSequenceClassification, Student, objective, training, predict)
IMPORTED += (students, teaching)


class Recorder(Listener):
    """Tells the test what happens, and does the harm that is due."""

    def __init__(self, root: Path, harm: dict[str, Any]) -> None:
        self._root, self._harm, self._steps = root, harm, 0

    def _say(self, name: str, line: str) -> None:
        with (self._root.parent / f"{self._root.name}.{name}").open("a") as file:
            file.write(f"{line}\n")

    def notice(self, line: str) -> None:
        self._say("notices", line)

    def step(self, report: Any) -> None:
        self._steps += 1
        self._say("steps", str(report.step))
        if self._steps == self._harm.get("step"):
            os.kill(os.getpid(), self._harm["signal"])
        if self._steps == 3 and "hold" in self._harm:
            deadline = time.monotonic() + 100
            while not Path(self._harm["hold"]).exists():
                assert time.monotonic() < deadline, "nobody waits"
                time.sleep(0.01)


def build(folder: Path, root: Path, harm: dict[str, Any]) -> dict[str, Any]:
    """Train as `compress run` does, on the folder's text.txt where there is one, the state saved after every step."""
    recipe, task, teacher = (str(folder / name) for name in ("recipe.yaml", "task.yaml", "teacher"))
    corpus = tuple(str(path) for path in folder.glob("text.txt"))
    request = Request((recipe,), (task,), teacher=teacher, corpus=corpus, root=root, precision="fp32")
    plan = plan_all(request)[0]
    trained = tuple(node for node in plan.nodes if node.kind not in ("export", "quantize"))
    plan = dataclasses.replace(plan, nodes=trained)
    listener = Recorder(root, harm)
    context = Context(plan.task, plan.precision, threads=1, listener=listener, checkpoint_seconds=-1)
    if "touch" in harm:
        kill_at(harm["touch"], root)
    artifacts, _ = run._build(plan, plan.nodes, context, Store(root / ".store", on_notice=listener.notice))
    logged = {name: artifact for name, artifact in artifacts.items() if (artifact.path / "log.jsonl").exists()}
    return {name: {"path": str(artifact.path), "info": artifact.info} for name, artifact in logged.items()}


def child(folder: Path, root: Path, harm: dict[str, Any]) -> int:
    signals.install()
    with root.with_suffix(".errors").open("a") as errors:
        try:
            found = build(folder, root, harm)
            root.with_suffix(f".done-{os.getpid()}").write_text(json.dumps(found))
        except (CompressError, Interrupted) as error:
            errors.write(f"{error}\n")
            return error.exit_code
        except BaseException:
            traceback.print_exc(file=errors)
            return 99
    return 0


def answer(command: Any) -> int:
    if isinstance(command, int):
        return os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    folder, root, harm = command
    process = os.fork()
    if process == 0:
        os._exit(child(Path(folder), Path(root), harm))
    return process


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)
