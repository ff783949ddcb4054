"""A task's data after reading: splits in file order; those for training separate from those for reporting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..spec.task import MEAN, TaskSpec


@dataclass(frozen=True)
class Split:
    """One split in file order.

    `texts`: one list per text column. `separate_texts`: the two texts of an example are read separately. `unanswerable`: train has
    questions without an answer, so a model may give none, in every split.
    `labels`, by kind of task:
    * int64 class ids [example]; float32 scores [example]; uint8 [example, label];
    * object [example] of int32 [word, 3], label id, start and end in characters;
    * object [example] of int32 [answer, 2], start and end in characters of the second text;
    * float64 [example, 2], relevance and number of the query;
    * int64 [example, 2], 1 for the right ending, else 0, and number of the question.
    """

    texts: tuple[list[str], ...]
    labels: np.ndarray
    separate_texts: bool = False
    unanswerable: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def labels_words(self) -> bool:
        """Whether each word of a text has a label."""
        return self.labels.dtype == object and len(self.texts) == 1

    @property
    def labels_spans(self) -> bool:
        """Whether labels are spans of the second text that answer the first, a question."""
        return self.labels.dtype == object and len(self.texts) == 2

    @property
    def ranks_groups(self) -> bool:
        """Whether examples are passages of queries."""
        return self.labels.dtype == np.float64 and self.labels.ndim == 2

    @property
    def has_choices(self) -> bool:
        """Whether examples are pairs of a context and one of a question's endings."""
        return self.labels.dtype == np.int64 and self.labels.ndim == 2

    def columns(self) -> tuple[Split, ...]:
        """Return each text column as a split of its own, with the same labels."""
        return tuple(Split((texts,), self.labels) for texts in self.texts)

    def select(self, indices: np.ndarray) -> Split:
        """Return the examples at `indices`, in that order."""
        texts = tuple([column[i] for i in indices] for column in self.texts)
        return replace(self, texts=texts, labels=self.labels[indices])


def of_words(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the `labels` of a split, given those of each text, int32 [word, 3], or of each question, int32 [answer, 2]."""
    array = np.empty(len(labels), dtype=object)
    for index, label in enumerate(labels):  # assigned together, numpy would merge arrays of equal shape
        array[index] = label
    return array


@dataclass(frozen=True)
class TrainingData:
    """Data for training, selection, calibration and search, without any reported split. `train` excludes `tuning`, unless that has its own
    file. `advice`: hints at possible mistakes of the user; not recorded."""

    spec: TaskSpec
    labels: tuple[str, ...]
    train: Split
    tuning: Split
    source: str
    notes: tuple[str, ...]
    fingerprint: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportedData:
    """The splits that scores are reported on, by name; only for measuring. The headline score is on the first, or the mean over all, as the
    task says."""

    spec: TaskSpec
    labels: tuple[str, ...]
    splits: dict[str, Split]
    fingerprint: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of everything that has scores; the first has the headline score: `MEAN` if that is the mean over the splits."""
        return (*((MEAN,) if self.spec.headline == MEAN else ()), *self.splits)

    @property
    def first(self) -> str:
        """Name of what the headline score is on."""
        return self.names[0]

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return the sizes of the splits combined under `name`, in order; () for the name of a single split."""
        return tuple(map(len, self.splits.values())) if name not in self.splits else ()

    def gathered(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return `arrays` [example, ...] for all `names`, given those of every split; those for `MEAN` are concatenated."""
        every = [] if self.first in self.splits else [np.concatenate([arrays[name] for name in self.splits])]
        return dict(zip(self.names, [*every, *map(arrays.__getitem__, self.splits)], strict=True))
