"""Choose which of several endings continues a context or answers a question.

Models score pairs of a context and an ending. Outputs are these scores as [question, ending], padded with `NO_SCORE` for questions with
fewer endings than others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...metrics import ChoiceHeadline
from ...metrics.ranks import queries_of
from ...runtime.passages import NO_SCORE
from ..reading.choices import pair_endings
from ..reading.columns import Rows
from .classification import CLASSIFICATION
from .kind import ConstantBaseline, Labels, Names, Scoring, StoredForm, TaskKind
from .ranking import copied_groups


def _read(rows: Rows, names: Names) -> np.ndarray:
    """Return int64 [pair, 2]: 1 for the right ending, else 0, and the number of the question."""
    return np.array(rows.labels, np.int64).reshape(-1, 2)


def right_places(labels: np.ndarray) -> np.ndarray:
    """Return int64 [question]: the index of the right ending, for questions in order of their numbers."""
    return np.array([labels[rows, 0].argmax() for rows in queries_of(labels)], np.int64)


def places_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each pair the row and column of its score in the outputs, int64 [pair]: its question, in order of their numbers, and its
    ending."""
    question, ending = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    for number, rows in enumerate(queries_of(labels)):
        question[rows], ending[rows] = number, np.arange(len(rows))
    return question, ending


def _constant(train: np.ndarray, names: Names, gold: np.ndarray) -> np.ndarray:
    """Return how often the right ending had each index in train, [question, ending]."""
    places = right_places(train)
    counts = np.bincount(places, minlength=max(2, int(gold.max(initial=0)) + 1)).astype(np.float32)
    return np.tile(counts, (len(gold), 1))


def _fits(array: np.ndarray, names: Names) -> bool:
    """Whether it has the shape of gold labels or outputs."""
    return bool((array >= 0).all()) if array.ndim == 1 else array.ndim == 2 and array.shape[1] > 1


def _ending_scores(outputs: np.ndarray) -> np.ndarray:
    """Return the scores of actual endings, [ending]."""
    return outputs[outputs > NO_SCORE / 2]


def _format_label(label: Any, names: Names) -> str:
    return f"ending {int(np.ravel(label)[0])}"


CHOICE: TaskKind = replace(
    CLASSIFICATION,
    labels=Labels(
        prepare=pair_endings,
        read=_read,
        description="one of several endings",
        format=_format_label,
        vary=lambda labels: True,  # every question has a right ending and wrong ones
        copied=copied_groups,
        gold=lambda labels, texts: right_places(labels),
    ),
    scoring=Scoring(headline=lambda metrics, positive, names: ChoiceHeadline(metrics)),
    constant_baseline=ConstantBaseline(
        outputs=_constant, description="always choosing the position that is right most often"
    ),
    output_count=lambda names: None,
    logits=_ending_scores,
    stored=StoredForm(
        from_outputs=lambda outputs: outputs.astype(np.float32),
        to_outputs=lambda stored, names: stored,
        fits=_fits,
        dtype=lambda names: np.dtype(np.float32),
    ),
)
