"""What a task's data look like once read: splits in file order; those that train apart from those that are reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compress.spec.task import MEAN, TaskSpec


@dataclass(frozen=True)
class Split:
    """One split in file order.

    `texts` has one list per text column; `labels` are int64 class ids [example], float32 scores [example], uint8 [example, label], or,
    object [example], int32 [word, 3] of label id, start and end in characters, or int32 [answer, 2] of start and end in characters of the
    second text; or float64 [example, 2] of relevance and the number of the query, or int64 [example, 2] of 1 for the right ending or 0
    and the number of the question. `apart`: the two texts of an example are read one by
    one. `unanswerable`: of questions of the task some have no answer in train, so a model may give none, in every split.
    """

    texts: tuple[list[str], ...]
    labels: np.ndarray
    apart: bool = False
    unanswerable: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def labels_words(self) -> bool:
        """Whether each word of a text has a label."""
        return self.labels.dtype == object and len(self.texts) == 1

    @property
    def labels_spans(self) -> bool:
        """Whether labels are spans of the second text that answer the first one, a question."""
        return self.labels.dtype == object and len(self.texts) == 2

    @property
    def ranks_groups(self) -> bool:
        """Whether examples are passages of queries."""
        return self.labels.dtype == np.float64 and self.labels.ndim == 2

    @property
    def has_choices(self) -> bool:
        """Whether examples are pairs of a context and one of the endings of a question."""
        return self.labels.dtype == np.int64 and self.labels.ndim == 2

    def columns(self) -> tuple[Split, ...]:
        """Each column of texts as a split of its own, with the same labels."""
        return tuple(Split((texts,), self.labels) for texts in self.texts)

    def select(self, indices: np.ndarray) -> Split:
        """The examples at `indices`, in that order."""
        texts = tuple([column[i] for i in indices] for column in self.texts)
        return replace(self, texts=texts, labels=self.labels[indices])


def of_words(labels: Sequence[np.ndarray]) -> np.ndarray:
    """The `labels` of a split, of those of each text, int32 [word, 3], or of each question, int32 [answer, 2]."""
    found = np.empty(len(labels), dtype=object)
    for index, label in enumerate(labels):  # at once, numpy would make arrays of one shape into one
        found[index] = label
    return found


@dataclass(frozen=True)
class TrainingData:
    """What may train, choose, calibrate and search: no reported split is in it. `train` is without `tuning`, unless that
    is a file of its own. `advice`: what the user may have meant otherwise; not of the record."""

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
    """The splits that scores are reported on, by name; the headline score is on the first, or the mean over all of them, as the task
    says. For what measures, alone."""

    spec: TaskSpec
    labels: tuple[str, ...]
    splits: dict[str, Split]
    fingerprint: str

    @property
    def names(self) -> tuple[str, ...]:
        """Of all that scores are given for; the headline score is that of the first: `MEAN`, where it is the mean over the splits."""
        return (*((MEAN,) if self.spec.headline == MEAN else ()), *self.splits)

    @property
    def first(self) -> str:
        """What the headline score is of."""
        return self.names[0]

    def sizes(self, name: str) -> tuple[int, ...]:
        """Of each split that is one of several under `name`, in their order; of a split itself nothing."""
        return tuple(map(len, self.splits.values())) if name not in self.splits else ()

    def gathered(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Of `arrays` [example, ...] of every split: those of all `names`, which are one after the other for `MEAN`."""
        every = [] if self.first in self.splits else [np.concatenate([arrays[name] for name in self.splits])]
        return dict(zip(self.names, [*every, *map(arrays.__getitem__, self.splits)], strict=True))
