"""What the stages of one run share: the task's data, the machine's settings, other processes, and the listener."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...spec.kinds import KindName
from .sources import TaskSource


class Listener:
    """Receives the events of a run. The command line overrides these methods; the default is silence."""

    def run(self, name: str, number: int, count: int) -> None:
        """The `number`th of `count` runs begins."""

    def stage(self, label: str, cached: bool) -> None:
        """A stage begins, or is in the store already."""

    def built_elsewhere(self, label: str, run: str) -> None:
        """Another process has finished a stage of `run`."""

    def step(self, report: Any) -> None:
        """One optimizer step: a `training.StepReport`."""

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Progress of a stage without optimizer steps: `done` of `total` (None: unknown) `what`, e.g. words."""

    def notice(self, line: str) -> None:
        """A line for the user."""

    def outlook(self, line: str) -> None:
        """A line printed before any work: what data there are, and how long the run will take."""


class Peers(Protocol):
    """The other processes of a run, which help to train."""

    def start_training(self, plan: str, node: str, out: Path, work: Path) -> None:
        """A training stage begins, with these folders."""

    def end_training(self) -> None:
        """The training is finished. Ends the stage in all processes but the first."""


@dataclass(frozen=True)
class Context:
    """The environment of one run's stages. `precision` is resolved: fp32 or bf16. `peers`: the other processes of a distributed run; with
    `fsdp` they hold parts of what is trained. `seen`: key of each stage reached so far -> whether it was in the store before this run."""

    task: TaskSource
    precision: str
    threads: int
    listener: Listener
    checkpoint_seconds: float = 60.0
    notices: list[str] = field(default_factory=list)
    seen: dict[str, bool] = field(default_factory=dict)
    peers: Peers | None = None
    fsdp: bool = False

    @property
    def kind(self) -> KindName:
        return self.task.spec.kind

    @property
    def labels(self) -> tuple[str, ...]:
        return self.task.data.labels

    def notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)
            self.listener.notice(line)
