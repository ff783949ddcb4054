"""What a run reads: the splits that stages may see of a task, and plain text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...corpus import Source, corpus_fingerprint, corpus_sources
from ...errors import CompressError
from ...paths import shown
from ...provenance import Corpus
from ...spec.task import TaskSpec
from ...tasks import Encoded, Split, TrainingData, encode, fingerprint, load_training, reported_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass
class DataSource:
    """A task and where its data are. `tuning`: a file for its tuning split, in place of the task's own."""

    spec: TaskSpec
    folder: Path | None
    data_dir: Path | None
    tuning: Path | None = None
    _encoded: dict[tuple[str, str, int], Encoded] = field(default_factory=dict, repr=False)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.spec, self.folder, self.data_dir, self.tuning)

    @property
    def names_tuning(self) -> bool:
        """Whether the tuning split is the user's own, and not held out of train."""
        places = (self.spec.files, self.spec.hub)
        return self.tuning is not None or any(place is not None and place.tuning is not None for place in places)

    def check_unchanged(self, fingerprint: str) -> None:
        """Raises `CompressError` where data as read are not those that were planned with."""
        if fingerprint != self.fingerprint:
            raise CompressError(f"task {self.spec.name}: its files changed since this command started; start it again")

    def encode(self, name: str, split: Split, tokenizer: Tokenizer, max_length: int) -> Encoded:
        """As token ids; kept, since stages and models share tokenizers."""
        key = (name, str(hash(tokenizer.to_str())), max_length)
        if key not in self._encoded:
            self._encoded[key] = encode(tokenizer, split, max_length)
        return self._encoded[key]


@dataclass
class TaskSource(DataSource):
    """What plans and stages have of a task: its training and tuning splits, read once per process, only when a stage needs
    them. No reported split can be reached from here; those that measure have a `ReportedSource`."""

    @cached_property
    def data(self) -> TrainingData:
        _ = self.fingerprint  # of the files as they are before they are read
        data = load_training(self.spec, self.folder, self.data_dir, self.tuning)
        self.check_unchanged(data.fingerprint)
        return data

    def encoded(self, split: Literal["train", "tuning"], tokenizer: Tokenizer, max_length: int) -> Encoded:
        """`train` or `tuning` as token ids."""
        found = {"train": self.data.train, "tuning": self.data.tuning}[split]
        return self.encode(split, found, tokenizer, max_length)

    def reported_rows(self, texts: Split) -> dict[str, tuple[int, ...]]:
        """Reported split -> the rows of `texts` that stand in it: all that a stage may ask of what is reported."""
        return reported_rows(texts, self.spec, self.folder, self.data_dir)


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

    def check_unchanged(self) -> None:
        """CompressError: the text is another than when the command was planned."""
        if corpus_fingerprint(self.sources) != self.fingerprint:
            raise CompressError("the plain text changed since this command started; start it again")

    @property
    def record(self) -> Corpus:
        """What a result says of it: no paths."""
        return Corpus(names=tuple(map(shown, self.words)), fingerprint=self.fingerprint)
