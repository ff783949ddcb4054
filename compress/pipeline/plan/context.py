"""What the stages of one run share: the task's data, the machine's settings, other processes, where to say things."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...spec.kinds import KindName
from .sources import TaskSource


class Listener:
    """What a run tells its caller. The command line overrides these; the default is silence."""

    def run(self, name: str, number: int, count: int) -> None:
        """The `number`th of several runs begins."""

    def stage(self, label: str, cached: bool) -> None:
        """A stage begins, or was found in the store."""

    def built_elsewhere(self, label: str, run: str) -> None:
        """Another process has finished a stage of `run`."""

    def step(self, report: Any) -> None:
        """One optimizer step: a `training.StepReport`."""

    def progress(self, what: str, done: int, total: int | None) -> None:
        """How far a stage without optimizer steps has come: `done` of `total` (None: unknown) `what`, e.g. words."""

    def notice(self, line: str) -> None:
        """Something worth a line."""

    def outlook(self, line: str) -> None:
        """Before any work: what data there are, and how long it will take."""


class Peers(Protocol):
    """The other processes of a run, which help to train."""

    def begin(self, plan: str, node: str, out: Path, work: Path) -> None:
        """A stage that trains begins, with these folders."""

    def trained(self) -> None:
        """The model is trained. Ends the stage in all processes but the first."""


@dataclass(frozen=True)
class Context:
    """The surroundings of one run's stages. `precision` is resolved: fp32 or bf16. `peers`: the other processes of
    a run on several, which hold parts of what is trained where `fsdp`.
    `seen`: keys of the stages that this run has come to -> whether each was there before it."""

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
