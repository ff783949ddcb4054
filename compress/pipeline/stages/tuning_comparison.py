"""How a changed model answers the tuning split, compared with the whole model that it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...results.fidelity import Delta
from ...stats import significance
from ...stats.fidelity import differ
from ...tasks import TASK_KINDS, TaskKind, TrainingData, headline, headline_of, score


@dataclass(frozen=True)
class TuningComparison:
    """`predict`: a model -> its outputs of the tuning split in the form that scores take; `gold`: what these are scored against."""

    data: TrainingData
    gold: np.ndarray
    predict: Callable[[Any], np.ndarray]
    model: Any

    @cached_property
    def whole(self) -> np.ndarray:
        return self.predict(self.model)

    def points(self, outputs: np.ndarray) -> float:
        return headline(score(self.data.spec, self.data.labels, outputs, self.gold))

    def divergence(self, outputs: np.ndarray) -> float:
        """Divergence from the whole model, as the kind of task measures it; clipped at 0 because of rounding."""
        return max(0.0, self._kind.fidelity.divergence(self.whole, outputs))

    def same(self, outputs: np.ndarray) -> float | None:
        """The share of examples with the same decision as the whole model's, for queries with the same best passage; None if answers are no
        decisions."""
        if moved := self._kind.fidelity.query_flips(self.whole, outputs, self.gold):
            changed, queries = moved
            return 1 - changed / queries
        if self._kind.decisions is None:
            return None
        return 1 - float(differ(self._kind.answers(self.whole), self._kind.answers(outputs)).mean())

    def delta(self, outputs: np.ndarray) -> Delta:
        """Difference in the headline score to the whole model."""
        return significance.delta(headline_of(self.data.spec, self.data.labels), self.whole, outputs, self.gold)

    @property
    def _kind(self) -> TaskKind:
        return TASK_KINDS[self.data.spec.kind]
