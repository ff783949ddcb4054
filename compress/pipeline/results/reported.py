"""The splits that scores are reported on: only for code that measures finished models and writes results."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...results import NEAR_TO
from ...spec.kinds import KINDS
from ...tasks import RUN, Encoded, ReportedData, TrainingData, load_reported, near_to
from ..plan.sources import DataSource, TaskSource

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class ReportedSource(DataSource):
    """The reported splits of a task, read once per process. Stages never receive one: a test checks everything that they are given and
    import."""

    @classmethod
    def of(cls, task: TaskSource) -> ReportedSource:
        """Return the reported splits of the same data that `task` trains on."""
        source = cls(task.spec, task.folder, task.data_dir, task.tuning)
        source.fingerprint = task.fingerprint
        return source

    @cached_property
    def data(self) -> ReportedData:
        data = load_reported(self.spec, self.folder, self.data_dir, self.tuning)
        self.check_unchanged(data.fingerprint)
        return data

    def nearness(self, training: TrainingData) -> str:
        """Return a sentence on how much of the tuning split, and of each reported one, is near to train; for reported splits, what is held
        out of train for tuning counts as train."""
        splits = {"tuning": training.tuning, **self.data.splits}
        near = dict(zip(splits, near_to(list(splits.values()), training.train), strict=True))
        if not self.names_tuning:
            held_out = near_to(list(self.data.splits.values()), training.tuning)
            near |= {name: near[name] | more for name, more in zip(self.data.splits, held_out, strict=True)}
        pairs = len(self.spec.text) > 1
        shared = "a context in common" if KINDS[self.spec.kind].unit == "question" else "a text in common"
        what = shared if pairs else f"{RUN} words in a row in common, or the whole of a shorter text"
        shares = (
            f"{name} {matches.sum():,} of {len(matches):,} ({100 * matches.mean():.1f}%)"
            for name, matches in near.items()
        )
        return f"{NEAR_TO} train ({what}): {', '.join(shares)}"

    def encoded(self, split: str, tokenizer: Tokenizer, max_length: int) -> Encoded:
        """Return a reported split as token ids."""
        return self.encode(split, self.data.splits[split], tokenizer, max_length)

    def token_counts(self, checkpoint: Path) -> dict[str, np.ndarray]:
        """Return split -> number of tokens per example for the model of `checkpoint`, int32 [example]; empty unless the task is
        classification."""
        from ...models.checkpoints.folders import load_tokenizer

        if self.spec.kind != "classification":
            return {}
        tokenizer, length = load_tokenizer(checkpoint), self.spec.max_length
        return {name: self.encoded(name, tokenizer, length).lengths.astype(np.int32) for name in self.data.splits}
