"""All data of a task at once, for the tests of data loading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from compress.spec.task import TaskSpec
from compress.tasks import Split, TrainingData, load_reported, load_training, near_to


@dataclass(frozen=True, kw_only=True)
class TaskData(TrainingData):
    """Training data together with the reported splits, which the package never holds in one object."""

    reported: dict[str, Split]


def load_task(spec: TaskSpec, folder: Path | None, data_dir: Path | None, tuning: Path | None = None) -> TaskData:
    training = load_training(spec, folder, data_dir, tuning)
    reported = load_reported(spec, folder, data_dir, tuning)
    assert reported.labels == training.labels and reported.fingerprint == training.fingerprint
    return TaskData(
        **{field.name: getattr(training, field.name) for field in fields(training)}, reported=reported.splits
    )


def count_near(splits: Sequence[Split], train: Split) -> list[int]:
    return [int(near.sum()) for near in near_to(splits, train)]
