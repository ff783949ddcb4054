"""What a run reads: the splits of a task that stages may see, and plain text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...corpus import Source, corpus_fingerprint, corpus_sources
from ...errors import CompressError
from ...files.paths import display_path
from ...provenance import Corpus
from ...spec.task import TaskSpec
from ...tasks import Encoded, Split, TrainingData, encode, fingerprint, load_training, reported_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass
class DataSource:
    """A task and where its data are. `tuning`: a file that replaces the task's own tuning split."""

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
        """Whether the user provides the tuning split, so that it is not held out of train."""
        places = (self.spec.files, self.spec.hub)
        return self.tuning is not None or any(place is not None and place.tuning is not None for place in places)

    def check_unchanged(self, fingerprint: str) -> None:
        """Raise `CompressError` if the data as read are not those of the plan."""
        if fingerprint != self.fingerprint:
            raise CompressError(f"task {self.spec.name}: its files changed since this command started; start it again")

    def encode(self, name: str, split: Split, tokenizer: Tokenizer, max_length: int) -> Encoded:
        """Return the split as token ids, cached because stages and models share tokenizers."""
        key = (name, str(hash(tokenizer.to_str())), max_length)
        if key not in self._encoded:
            self._encoded[key] = encode(tokenizer, split, max_length)
        return self._encoded[key]


@dataclass
class TaskSource(DataSource):
    """What plans and stages can access of a task: its training and tuning splits, read once per process, only when a stage needs them. No
    reported split can be reached from here; code that measures uses a `ReportedSource`."""

    @cached_property
    def data(self) -> TrainingData:
        _ = self.fingerprint  # taken before the files are read
        data = load_training(self.spec, self.folder, self.data_dir, self.tuning)
        self.check_unchanged(data.fingerprint)
        return data

    def encoded(self, split: Literal["train", "tuning"], tokenizer: Tokenizer, max_length: int) -> Encoded:
        """Return `train` or `tuning` as token ids."""
        examples = {"train": self.data.train, "tuning": self.data.tuning}[split]
        return self.encode(split, examples, tokenizer, max_length)

    def reported_rows(self, texts: Split) -> dict[str, tuple[int, ...]]:
        """Return reported split -> the rows of `texts` that occur in it: all that a stage may learn of reported splits."""
        return reported_rows(texts, self.spec, self.folder, self.data_dir)


@dataclass(frozen=True)
class TextSource:
    """Plain text for the stages that train without labels, from the words of the command line."""

    words: tuple[str, ...]

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return corpus_sources(self.words)

    @cached_property
    def fingerprint(self) -> str:
        return corpus_fingerprint(self.sources)

    def check_unchanged(self) -> None:
        """Raise `CompressError` if the text changed since the plan was made."""
        if corpus_fingerprint(self.sources) != self.fingerprint:
            raise CompressError("the plain text changed since this command started; start it again")

    @property
    def record(self) -> Corpus:
        """The corpus as a result records it: without paths."""
        return Corpus(names=tuple(map(display_path, self.words)), fingerprint=self.fingerprint)
