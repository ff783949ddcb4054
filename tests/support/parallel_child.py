"""Trains in several processes for test_parallel: under torchrun, or in forks of one process that has imported torch.

`python -m torch.distributed.run parallel_child.py SCENARIO FOLDER` runs a scenario in each process of torchrun. Otherwise stdin
has lines of JSON `[scenario, folder, processes, options]`; each scenario is run in that many forks, and the reply is their exit
codes. Each fork prints to FOLDER/said-RANK.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from sharded_features import features
from torch import Tensor, nn
from training_toys import classifier_bias, fit, toy_model, weights
from transformers import BertForMaskedLM, BertForSequenceClassification

from compress import cli
from compress.errors import CompressError
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.soft_target import SoftTarget
from compress.models.features.named import Features, compute_features
from compress.objective import Objective
from compress.pipeline.stages.registry import STAGES
from compress.pipeline.training import run as training_run
from compress.pipeline.training import teacher_targets
from compress.processes import ranks, signals
from compress.spec.stages import Training
from compress.tasks import TaskBatches
from compress.training import StepReport

IMPORTED = (BertForMaskedLM, BertForSequenceClassification, teacher_targets, training_run)
SETTINGS = {
    "whole": Training(epochs=2, batch_size=8, learning_rate=1e-3),  # 28 examples: the last batch has 4
    "micro": Training(epochs=1, batch_size=8, learning_rate=1e-3, micro_batch_size=3),
    "empty": Training(epochs=1, batch_size=9, learning_rate=1e-3),  # one example in the last batch: none for a process
}


class Projected(Objective):
    """An objective with losses per token and per example, a trained projection and a running mean in a buffer."""

    def __init__(self) -> None:
        super().__init__((SoftTarget(weight=2.0), HardLabel(), HiddenCosine(weight=3.0)))
        torch.manual_seed(9)
        self.projection = nn.Linear(16, 2)
        self.seen = nn.Buffer(torch.zeros(()))
        self.student_features |= {"hidden[-1]"}

    def forward(self, student: Features, teacher: Features, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.no_grad():
            self.seen += 0.1 * (batch["labels"].float().mean() - self.seen)
        read = self.projection(student["hidden[-1]"][:, 0])
        terms = super().forward(student, teacher, batch)
        return {**terms, "read": nn.functional.cross_entropy(read, batch["labels"])}


def learn(
    folder: Path, settings: Training, *, dropout: float = 0.0, on_step: Any = lambda report: None, **more: Any
) -> Any:
    """Train the toy; return its losses by step. The first process saves the weights to learnt.safetensors."""
    model, objective, other, reports = toy_model(dropout), Projected(), toy_model(0.0, 2).eval(), list[StepReport]()
    table = torch.randn(28, 2, generator=torch.Generator().manual_seed(0))

    def teacher(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return {**compute_features(other, batch, ["hidden[-1]"]), "logits": table[torch.from_numpy(indices)]}

    def record(report: StepReport) -> None:
        reports.append(report)
        on_step(report)

    fit(model, settings, folder / "work", objective=objective, teacher=teacher, on_step=record, **more)
    learnt = weights(model, objective)
    digest = [tensor.tolist() for name, tensor in learnt.items() if not (more.get("split") and name.startswith("0."))]
    assert ranks.gather(digest) == [digest] * ranks.count()
    if ranks.is_first():
        save_file(learnt, folder / "learnt.safetensors")
    return [report.losses for report in reports]


def losses(folder: Path, *, split: bool = False, precision: str = "fp32") -> None:
    """Train the toy with each of `SETTINGS`, and save the example ids that each process used."""
    for name, settings in SETTINGS.items():
        place, ids = folder / name, list[list[int]]()
        place.mkdir(exist_ok=True)
        collate = TaskBatches.collate

        def noted(self: TaskBatches, indices: np.ndarray, ids: Any = ids, collate: Any = collate) -> Any:
            ids.append(indices.tolist())
            return collate(self, indices)

        TaskBatches.collate = noted
        step_losses = learn(place, settings, split=split, precision=precision)
        TaskBatches.collate = collate
        (place / f"ids-{ranks.rank()}.json").write_text(json.dumps(ids))
        if ranks.is_first():
            (place / "losses.json").write_text(json.dumps(step_losses))


def faults(folder: Path, *, step: int = 0, number: int = 0, who: tuple[int, ...] = (), **options: Any) -> None:
    """Train the toy with dropout, saving at every step; at `step` the processes `who` get the signal `number`."""
    pids = ranks.gather(os.getpid())
    signals.install()

    def harm(report: StepReport) -> None:
        if report.step == step:
            for rank in who:
                os.kill(pids[rank], number)

    settings = Training(epochs=2, batch_size=8, learning_rate=1e-3, evaluate_every=0.75)
    learn(folder, settings, dropout=0.1, on_step=harm, evaluate=classifier_bias, checkpoint_seconds=-1, **options)


def no_memory(folder: Path) -> None:
    """Train while process 1 runs out of memory."""
    forward = Objective.forward

    def failing(self: Objective, student: Features, teacher: Features, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        if ranks.rank() == 1:
            raise torch.OutOfMemoryError("no room")
        return forward(self, student, teacher, batch)

    Objective.forward = failing
    learn(folder, Training(epochs=1, batch_size=8, learning_rate=1e-3), split=True)


def leave(folder: Path) -> None:
    """Print the number of gloo threads while the processes are connected, and after they leave."""
    ranks.broadcast("word")
    joined = _gloo_threads()
    ranks.leave()
    print(f"joined {joined} left {_gloo_threads()}")


def _gloo_threads() -> int:
    return sum("gloo" in path.read_text() for path in Path("/proc/self/task").glob("*/comm"))


def command(
    folder: Path, *, arguments: list[str], nan: int | None = None, fail: bool = False, interrupt: bool = False
) -> None:
    """Run `compress ARGUMENTS`. In process `nan` the loss becomes NaN; `fail`: the export fails; `interrupt`: all processes get
    SIGINT during the export."""
    forward, calls = Objective.forward, []

    def poisoned(self: Objective, student: Features, teacher: Features, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        calls.append(1)
        terms = forward(self, student, teacher, batch)
        return {name: term * (float("nan") if len(calls) == 2 else 1) for name, term in terms.items()}

    def failing(*_: Any) -> Any:
        if fail:
            raise CompressError("the export cannot be done")
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        raise AssertionError("a signal of its own comes at once")

    pids = reversed(ranks.gather(os.getpid())) if interrupt else ()
    if nan == ranks.rank():
        Objective.forward = poisoned
    if fail or interrupt:
        STAGES["export"] = dataclasses.replace(STAGES["export"], run=failing)
    os.chdir(folder)
    sys.argv = ["compress", *arguments]
    cli.main()


SCENARIOS: dict[str, Callable[..., None]] = {
    scenario.__name__: scenario for scenario in (losses, faults, features, no_memory, leave, command)
}


def child(scenario: str, folder: Path, options: dict[str, Any], rank: int, count: int, port: int) -> int:
    if count > 1:
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
        os.environ.update({name: str(value) for name, value in variables.items()})
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    with (folder / f"said-{rank}").open("a") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            SCENARIOS[scenario](folder, **options)
        except SystemExit as end:
            return int(end.code or 0)
        except BaseException as error:
            traceback.print_exc()
            return getattr(error, "exit_code", 99)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    return 0


def answer(scenario: str, folder: str, count: int, options: dict[str, Any]) -> list[int]:
    """Return the exit codes by rank; for a killed process, minus the signal's number."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pids = []
    for rank in range(count):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                signal.alarm(60)  # a hanging fork does not outlive the test
                os._exit(child(scenario, Path(folder), options, rank, count, port))
            os._exit(98)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def main() -> None:
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
        return
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(*json.loads(line))), flush=True)
    os._exit(0)  # skips the interpreter's shutdown, which takes seconds after these imports


main()
