"""What the stages of one run share: the task's data, the seed, the machine's settings, where to say things."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus import Source, corpus_fingerprint, corpus_sources
from ..errors import CompressError
from ..spec.task import TaskSpec
from ..tasks import Encoded, TaskData, encode, fingerprint, load_task

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from .together import Together


class Listener:
    """What a run tells its caller. The command line overrides these; the default is silence."""

    def stage(self, label: str, cached: bool) -> None:
        """A stage begins, or was found in the store."""

    def step(self, report: Any) -> None:
        """One optimizer step: a `training.StepReport`."""

    def progress(self, what: str, done: int, total: int | None) -> None:
        """How far a stage without optimizer steps has come: `done` of `total` (None: unknown) `what`, e.g. words."""

    def notice(self, line: str) -> None:
        """Something worth a line."""


@dataclass
class TaskSource:
    """A task and where its data are; read once per process, only when a stage needs it."""

    spec: TaskSpec
    folder: Path | None
    data_dir: Path | None
    _encoded: dict[tuple[str, str, int], Encoded] = field(default_factory=dict, repr=False)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.spec, self.folder, self.data_dir)

    @cached_property
    def data(self) -> TaskData:
        planned = self.fingerprint
        data = load_task(self.spec, self.folder, self.data_dir)
        if data.fingerprint != planned:
            raise CompressError(f"task {self.spec.name}: its files changed since this command started; start it again")
        return data

    def encoded(self, split: str, tokenizer: Tokenizer, max_length: int) -> Encoded:
        """`train`, `tuning` or a reported split as token ids; kept, since stages and models share tokenizers."""
        key = (split, str(hash(tokenizer.to_str())), max_length)
        if key not in self._encoded:
            data = self.data
            texts = {"train": data.train, "tuning": data.tuning, **data.reported}[split]
            self._encoded[key] = encode(tokenizer, texts, max_length)
        return self._encoded[key]


@dataclass(frozen=True)
class TextSource:
    """Plain text for the stages that train without labels: what the command names, found."""

    words: tuple[str, ...]

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return corpus_sources(self.words)

    @cached_property
    def fingerprint(self) -> str:
        return corpus_fingerprint(self.sources)


@dataclass(frozen=True)
class Context:
    """The surroundings of one run's stages. `precision` is resolved: fp32 or bf16. `together`: with other processes,
    which hold parts of what is trained where `fsdp`.
    `seen`: keys of the stages that this run has come to -> whether each was there before it."""

    task: TaskSource
    precision: str
    threads: int
    listener: Listener
    checkpoint_seconds: float = 60.0
    notices: list[str] = field(default_factory=list)
    seen: dict[str, bool] = field(default_factory=dict)
    together: Together | None = None
    fsdp: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        return self.task.data.labels

    def notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)
            self.listener.notice(line)
