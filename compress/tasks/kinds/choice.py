"""Which of several endings a context goes on with, or a question is answered by.

Models score pairs of a context and an ending. Outputs are [question, ending], those scores side by side, and `NEVER` behind the last
ending of a question that has fewer than others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from compress.metrics import ChoiceHeadline
from compress.metrics.ranks import queries_of
from compress.runtime.passages import NEVER

from ..choices import paired
from ..columns import Rows
from .classification import CLASSIFICATION
from .kind import Names, TaskKind
from .ranking import copied_groups


def _read(rows: Rows, names: Names) -> np.ndarray:
    """int64 [pair, 2]: 1 for the right ending, else 0, and the number of the question."""
    return np.array(rows.labels, np.int64).reshape(-1, 2)


def right_places(labels: np.ndarray) -> np.ndarray:
    """int64 [question]: the place of the right one among a question's endings, questions in the order of their numbers."""
    return np.array([labels[rows, 0].argmax() for rows in queries_of(labels)], np.int64)


def places_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair the row and the column of its score in outputs: which question it is of, in the order of their numbers, and which of
    its endings; int64 [pair]."""
    question, ending = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    for number, rows in enumerate(queries_of(labels)):
        question[rows], ending[rows] = number, np.arange(len(rows))
    return question, ending


def _constant(train: np.ndarray, names: Names, gold: np.ndarray) -> np.ndarray:
    """How often the right ending stood at each place in train, [question, place]."""
    places = right_places(train)
    counts = np.bincount(places, minlength=max(2, int(gold.max(initial=0)) + 1)).astype(np.float32)
    return np.tile(counts, (len(gold), 1))


def _fits(kept: np.ndarray, names: Names) -> bool:
    """Gold, or outputs."""
    return bool((kept >= 0).all()) if kept.ndim == 1 else kept.ndim == 2 and kept.shape[1] > 1


def _own(outputs: np.ndarray) -> np.ndarray:
    """The scores of endings alone, [ending]."""
    return outputs[outputs > NEVER / 2]


def _written(label: Any, names: Names) -> str:
    return f"ending {int(np.ravel(label)[0])}"


CHOICE: TaskKind = replace(
    CLASSIFICATION,
    label_names=lambda spec, train: (),
    read_labels=_read,
    written=_written,
    present=lambda labels: set(),
    headline=lambda metrics, positive, names: ChoiceHeadline(metrics),
    constant=_constant,
    constant_words="always answering the place at which the right ending stands most often",
    label_words="one of several endings",
    kept=lambda outputs: outputs.astype(np.float32),
    outputs=lambda kept, names: kept,
    fits=_fits,
    kept_type=lambda names: np.dtype(np.float32),
    prepared=paired,
    varied=lambda labels: True,  # a question has an ending that is right and others that are not
    copied=copied_groups,
    gold=lambda labels, texts: right_places(labels),
    logits=_own,
    width=lambda names: None,
)
