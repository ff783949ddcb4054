"""The splits that scores are reported on: for what measures finished models and writes results, and for nothing else."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...results import NEAR_TO
from ...spec.kinds import KINDS
from ...tasks import RUN, Encoded, ReportedData, TrainingData, is_at_hand, load_reported, near
from ..plan.sources import DataSource, TaskSource

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class ReportedSource(DataSource):
    """The reported splits of a task, read once per process. Stages are never given one: a test walks all that they are
    given, and all that they import."""

    @classmethod
    def of(cls, task: TaskSource) -> ReportedSource:
        """Of the very data that `task` trains on."""
        found = cls(task.spec, task.folder, task.data_dir, task.tuning)
        found.fingerprint = task.fingerprint
        return found

    @cached_property
    def data(self) -> ReportedData:
        data = load_reported(self.spec, self.folder, self.data_dir, self.tuning)
        self.check_unchanged(data.fingerprint)
        return data

    def nearness(self, training: TrainingData) -> str:
        """A sentence: how much of the tuning split, and of each reported one, is near to what models are trained on."""
        splits = {"tuning": training.tuning, **self.data.splits}
        counts = near(list(splits.values()), training.train)
        pairs = len(self.spec.text) > 1
        shared = "a context in common" if KINDS[self.spec.kind].unit == "question" else "a text in common"
        what = shared if pairs else f"{RUN} words in a row in common, or the whole of a shorter text"
        shares = (
            f"{name} {count:,} of {len(split):,} ({100 * count / len(split):.1f}%)"
            for (name, split), count in zip(splits.items(), counts, strict=True)
        )
        return f"{NEAR_TO} train ({what}): {', '.join(shares)}"

    def encoded(self, split: str, tokenizer: Tokenizer, max_length: int) -> Encoded:
        """A reported split as token ids."""
        return self.encode(split, self.data.splits[split], tokenizer, max_length)

    def token_counts(self, checkpoint: Path) -> dict[str, np.ndarray]:
        """Split -> tokens of each example as the model of `checkpoint` reads it, int32 [example]; of classes alone."""
        from ...models.checkpoints import load_tokenizer

        if self.spec.kind != "classification":
            return {}
        tokenizer, length = load_tokenizer(checkpoint), self.spec.max_length
        return {name: self.encoded(name, tokenizer, length).lengths.astype(np.int32) for name in self.data.splits}


def nearness(task: TaskSource) -> str | None:
    """`ReportedSource.nearness` of a task whose data are at hand; None where the hub would be asked for them."""
    if not is_at_hand(task.spec, task.folder, task.data_dir):
        return None
    return ReportedSource.of(task).nearness(task.data)
