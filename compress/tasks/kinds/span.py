"""Extractive question answering: a part of a text that answers a question, or nothing, as in SQuAD 1.1 and 2.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import CompressError
from ...metrics import AnswersHeadline
from ...metrics.answers import (
    ANSWER_OUTPUTS,
    EXACT,
    F1,
    NONE,
    SCORE,
    best_no_answer_threshold,
    decided_spans,
    has_answer,
    question_gold,
)
from ...runtime.passages import NO_SCORE
from ...spec.kinds import KINDS
from ..data import of_words
from ..ensembles import mean_of_log_probabilities
from ..reading.answers import parse_answers
from ..reading.columns import Rows
from .kind import ConstantBaseline, Decisions, FidelityMeasures, Labels, Scoring, StoredForm, TaskKind, TeacherEnsemble


def _read(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    """Return object [question] of int32 [answer, 2]: start and end in characters of the context."""
    if not any(rows.labels):
        raise CompressError(
            f"{rows.place}: none of its {len(rows):,} questions has an answer; expected answers to some"
        )
    return of_words([np.array(spans, np.int32).reshape(-1, 2) for spans in rows.labels])


def _strata(labels: np.ndarray) -> list[int]:
    """Return 1 for questions with an answer, else 0."""
    return [int(len(spans) > 0) for spans in labels]


def _format_label(label: Any, names: tuple[str, ...]) -> str:
    """Return an answer, given as start and end, or gold, as text."""
    places = np.atleast_1d(label)
    if len(places) == 2 and places.any():
        return f"characters {places[0]} to {places[1]}"
    return "an answer" if len(places) == 1 and has_answer(places).all() else "no answer"


def _constant(train: np.ndarray, names: tuple[str, ...], gold: np.ndarray) -> np.ndarray:
    outputs = np.zeros((len(gold), ANSWER_OUTPUTS), np.float32)
    outputs[:, SCORE] = -1
    outputs[:, [EXACT, F1]] = ~has_answer(gold)[:, None]
    return outputs


def _confidence(outputs: np.ndarray) -> np.ndarray:
    """Return the probability of the decision between the best span and no answer; 1 if there is always an answer."""
    margin = np.abs(outputs[:, SCORE].astype(np.float64) - outputs[:, NONE])
    return 1 / (1 + np.exp(-margin))


def _fits(array: np.ndarray, names: tuple[str, ...]) -> bool:
    """Whether it has the shape of gold, alone or repeated beside outputs, or of outputs."""
    if array.ndim == 1 or (array == array[:, :1]).all():
        return bool((array >= 0).all() and (array == np.floor(array)).all())
    return (
        array.ndim == 2
        and array.shape[1] == ANSWER_OUTPUTS
        and bool(((array[:, EXACT:] >= 0) & (array[:, EXACT:] <= 1)).all())
    )


def _logits(outputs: np.ndarray) -> np.ndarray:
    """Return the logits of the best span and, if no answer is allowed, of no answer."""
    return outputs[:, [SCORE]] if (outputs[:, NONE] == NO_SCORE).all() else outputs[:, [SCORE, NONE]]


def _exact_flips(fp32: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    before, after = fp32[:, EXACT] == 1, other[:, EXACT] == 1
    return int((before & ~after).sum()), int((after & ~before).sum())


SPAN = TaskKind(
    labels=Labels(
        prepare=parse_answers,
        names=lambda spec, train: KINDS["span"].outputs,
        read=_read,
        description="an answer in the text",
        format=_format_label,
        present=lambda labels: {0, 1},  # every model has both outputs
        strata=_strata,
        vary=lambda labels: True,  # questions differ, even if all have an answer
        gold=lambda labels, texts: question_gold(texts[1], labels),
    ),
    scoring=Scoring(headline=lambda metrics, positive, names: AnswersHeadline(metrics)),
    constant_baseline=ConstantBaseline(outputs=_constant, description="answering no question"),
    output_count=lambda names: ANSWER_OUTPUTS,
    logits=_logits,
    answers=decided_spans,
    fit_threshold=lambda outputs, gold, headline: best_no_answer_threshold(
        outputs, gold, AnswersHeadline(headline.metrics)
    ),
    decisions=Decisions(confidence=_confidence, calibrated=False, correct=lambda outputs, gold: outputs[:, EXACT] == 1),
    stored=StoredForm(
        from_outputs=lambda outputs: outputs.astype(np.float32),
        to_outputs=lambda stored, names: stored,
        fits=_fits,
        dtype=lambda names: np.dtype(np.float32),
    ),
    fidelity=FidelityMeasures(
        divergence=lambda fp32, other: float(np.square(_logits(other) - _logits(fp32)).mean()), exact_flips=_exact_flips
    ),
    ensemble=TeacherEnsemble(mean=mean_of_log_probabilities),
)
