"""Logits of a quantized model and of its fp32 one -> what a result says of its fidelity."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..fidelity import calibration_error, flipped, logit_difference, probabilities
from ..results import Delta, Fidelity, Flip


def fidelity(
    fp32: np.ndarray,
    int8: np.ndarray,
    gold: np.ndarray,
    labels: tuple[str, ...],
    *,
    reference: str,
    split: str,
    delta: Delta,
) -> Fidelity:
    """`fp32`, `int8`: logits [example, class] of one split in file order; `labels` is empty for regression, which has no
    decisions."""
    mean, worst = logit_difference(fp32, int8)
    return Fidelity(
        reference=reference,
        split=split,
        examples=len(gold),
        delta=delta,
        mean_logit_difference=mean,
        worst_logit_difference=worst,
        **(_decisions(fp32, int8, gold, labels) if labels else {}),
    )


def _decisions(fp32: np.ndarray, int8: np.ndarray, gold: np.ndarray, labels: tuple[str, ...]) -> dict[str, Any]:
    rows = flipped(fp32, int8)
    confidence = probabilities(fp32).max(axis=1)
    before, after = fp32.argmax(axis=1), int8.argmax(axis=1)
    flips = tuple(
        Flip(
            row=int(row) + 1,
            fp32=labels[before[row]],
            int8=labels[after[row]],
            confidence=round(float(confidence[row]), 4),
            gold=_agrees(int(gold[row]), int(before[row]), int(after[row])),
        )
        for row in rows
    )
    return {
        "flips": len(flips),
        "flip_rate": len(flips) / len(gold),
        "flipped": flips,
        "fp32_calibration_error": calibration_error(fp32, gold),
        "int8_calibration_error": calibration_error(int8, gold),
    }


def _agrees(gold: int, before: int, after: int) -> Literal["fp32", "int8", "neither"]:
    if gold == before:
        return "fp32"
    return "int8" if gold == after else "neither"
