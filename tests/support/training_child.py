"""Run as a child process by fault_runs: imports torch once, then forks a process for each run of the folder's recipe, up to the
trained student.

`harm` may hold the arguments of disk_faults.install, and: `signal` and `step`, a signal to send in the run's `step`-th step;
`hold`, a file to wait for in the third step.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import traceback
from pathlib import Path
from typing import Any

import disk_faults
import torch
from forking import serve
from transformers import AutoModelForSequenceClassification, BertForSequenceClassification
from transformers import DistilBertForSequenceClassification as Student
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

from compress import augment, objective, training
from compress.errors import CompressError, Interrupted
from compress.models import students
from compress.models.features import predict
from compress.pipeline import Listener, Request, plan_all
from compress.pipeline.building import build_nodes
from compress.pipeline.plan import Context
from compress.pipeline.training import initial_student, initial_teacher, run, teacher_targets
from compress.processes import signals
from compress.store import Store

IMPORTED = (AutoModelForSequenceClassification, BertForSequenceClassification, Student, objective, training, predict)
IMPORTED += (augment, initial_student, initial_teacher, run, students, teacher_targets)
get_checkpoint_conversion_mapping("bert")  # compiles a thousand patterns, once for all forks


class Recorder(Listener):
    """Reports events to the test, and applies the harm when it is due."""

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
    """Train as `compress run` does, with the folder's text.txt if there is one, saving the state after every step."""
    recipe, task, teacher = (str(folder / name) for name in ("recipe.yaml", "task.yaml", "teacher"))
    corpus = tuple(str(path) for path in folder.glob("text.txt"))
    request = Request((recipe,), (task,), teacher=teacher, corpus=corpus, root=root, precision="fp32")
    plan = plan_all(request)[0]
    trained = tuple(node for node in plan.nodes if not node.kind.onnx)
    plan = dataclasses.replace(plan, nodes=trained)
    listener = Recorder(root, harm)
    context = Context(plan.task, plan.precision, threads=1, listener=listener, checkpoint_seconds=-1)
    disk_faults.install(harm, root)
    artifacts, _ = build_nodes(plan, plan.nodes, context, Store(root / ".store", on_notice=listener.notice))
    logged = {name: artifact for name, artifact in artifacts.items() if (artifact.path / "log.jsonl").exists()}
    return {name: {"path": str(artifact.path), "info": artifact.info} for name, artifact in logged.items()}


def child(folder: Path, root: Path, harm: dict[str, Any]) -> int:
    signals.install()
    with root.with_suffix(".errors").open("a") as errors:
        try:
            artefacts = build(folder, root, harm)
            path = root.with_suffix(f".telling-{os.getpid()}")
            path.write_text(json.dumps(artefacts))
            path.rename(root.with_suffix(f".done-{os.getpid()}"))  # complete or absent, as a kill may come right here
        except (CompressError, Interrupted) as error:
            errors.write(f"{error}\n")
            return error.exit_code
        except BaseException:
            traceback.print_exc(file=errors)
            return 99
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(child)
