"""What a task's data look like once read: splits in file order, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compress.spec.task import TaskSpec


@dataclass(frozen=True)
class Split:
    """One split in file order.

    `texts` has one list per text column; `labels` are int64 class ids [example] or float32 scores [example].
    """

    texts: tuple[list[str], ...]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, indices: np.ndarray) -> Split:
        """The examples at `indices`, in that order."""
        texts = tuple([column[i] for i in indices] for column in self.texts)
        return Split(texts, self.labels[indices])


@dataclass(frozen=True)
class TaskData:
    """A task's splits. `train` is without `tuning`; the headline score is on the first of `reported`."""

    spec: TaskSpec
    labels: tuple[str, ...]
    train: Split
    tuning: Split
    reported: dict[str, Split]
    source: str
    notes: tuple[str, ...]
    fingerprint: str

    @property
    def num_labels(self) -> int:
        """Outputs of a model for this task: the classes, or 1 for regression."""
        return len(self.labels) or 1
