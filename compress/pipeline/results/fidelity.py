"""Compare the logits of a quantized model with those of its fp32 model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...results.fidelity import (
    MOST_DISAGREEMENTS,
    Delta,
    Disagreement,
    EntityFlips,
    ExactFlips,
    Fidelity,
    Flip,
    QueryFlips,
    ReliabilityBin,
)
from ...stats.fidelity import calibration_error, flip_positions, logit_difference, most_confident, reliability
from ...tasks import TaskKind


def fidelity(
    fp32: np.ndarray,
    int8: np.ndarray,
    gold: np.ndarray,
    labels: tuple[str, ...],
    *,
    kind: TaskKind,
    reference: str,
    split: str,
    delta: Delta,
) -> Fidelity:
    """Compare `fp32` and `int8`: logits [example, output] of one split in file order, or [word, label]; `gold`: what they are compared with
    (`Labels.gold`), with the names `labels`."""
    mean, worst = logit_difference(kind.logits(fp32), kind.logits(int8))
    moved = kind.fidelity.query_flips(fp32, int8, gold)
    return Fidelity(
        reference=reference,
        split=split,
        examples=len(gold),
        delta=delta,
        mean_logit_difference=mean,
        worst_logit_difference=worst,
        query_flips=moved and QueryFlips(changed=moved[0], queries=moved[1]),
        **_decisions(fp32, int8, gold, labels, kind),
        **kind.fidelity.similarity(fp32, int8),
    )


def reliability_bins(outputs: np.ndarray, gold: np.ndarray, kind: TaskKind) -> tuple[ReliabilityBin, ...]:
    """Return the reliability bins of one model, whose outputs are as in `fidelity`. Empty if answers are no decisions, or their confidence
    is no probability."""
    decisions = kind.decisions
    if decisions is None or not decisions.calibrated:
        return ()
    bins = reliability(decisions.confidence(outputs), decisions.correct(outputs, gold))
    return tuple(
        ReliabilityBin(number=number, examples=count, confidence=round(sure, 4), right=round(right, 4))
        for number, count, sure, right in bins
    )


def disagreements(
    teacher: np.ndarray, model: np.ndarray, gold: np.ndarray, labels: tuple[str, ...], kind: TaskKind
) -> tuple[Disagreement, ...]:
    """Return the disagreements of a model with the baseline, whose outputs are as in `fidelity`. Empty if answers are no decisions, or
    their confidence is no probability."""
    decisions = kind.decisions
    if decisions is None or not decisions.calibrated:
        return ()
    sure = decisions.confidence(teacher), decisions.confidence(model)
    answers = kind.answers(teacher), kind.answers(model)
    right = decisions.correct(teacher, gold), decisions.correct(model, gold)
    return tuple(
        Disagreement(
            row=int(row) + 1,
            teacher=str(kind.labels.format(answers[0][row], labels)),
            model=str(kind.labels.format(answers[1][row], labels)),
            teacher_confidence=round(float(sure[0][row]), 4),
            model_confidence=round(float(sure[1][row]), 4),
            gold=_right_model(teacher=bool(right[0][row]), model=bool(right[1][row])),
        )
        for row in most_confident(*answers, sure, MOST_DISAGREEMENTS)
    )


def _decisions(
    fp32: np.ndarray, int8: np.ndarray, gold: np.ndarray, labels: tuple[str, ...], kind: TaskKind
) -> dict[str, Any]:
    """Return the fields on changed decisions; empty if answers are no decisions."""
    decisions = kind.decisions
    if decisions is None:
        return {}
    sure, sure_int8 = decisions.confidence(fp32), decisions.confidence(int8)
    before, after = kind.answers(fp32), kind.answers(int8)
    right, right_int8 = decisions.correct(fp32, gold), decisions.correct(int8, gold)
    flips = tuple(
        Flip(
            row=int(row) + 1,
            fp32=str(kind.labels.format(before[row], labels)),
            int8=str(kind.labels.format(after[row], labels)),
            confidence=round(float(sure[row]), 4),
            gold=_right_precision(bool(right[row]), bool(right_int8[row])),
        )
        for row in flip_positions(before, after, sure)
    )
    changed = kind.fidelity.entity_flips(fp32, int8, gold, labels)
    exact = kind.fidelity.exact_flips(fp32, int8)
    return {
        "entity_flips": changed and EntityFlips(changed=changed[0], entities=changed[1]),
        "exact_flips": exact and ExactFlips(lost=exact[0], gained=exact[1]),
        "flips": len(flips),
        "flip_rate": len(flips) / len(gold),
        "flipped": flips,
        "fp32_calibration_error": calibration_error(sure, right) if decisions.calibrated else None,
        "int8_calibration_error": calibration_error(sure_int8, right_int8) if decisions.calibrated else None,
    }


def _right_precision(fp32: bool, int8: bool) -> Literal["fp32", "int8", "neither"]:
    if fp32:
        return "fp32"
    return "int8" if int8 else "neither"


def _right_model(teacher: bool, model: bool) -> Literal["teacher", "model", "neither"]:
    if teacher:
        return "teacher"
    return "model" if model else "neither"
