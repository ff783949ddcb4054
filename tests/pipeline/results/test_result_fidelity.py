"""From logits to what a result says of a quantized model's fidelity."""

from __future__ import annotations

import numpy as np
import pytest

from compress.pipeline.results.fidelity import fidelity
from compress.recorded_fidelity import Delta, Fidelity
from compress.tasks import TASK_KINDS

LABELS = ("no", "maybe", "yes")
DELTA = Delta(points=-0.5, low=-1.0, high=0.1, mcnemar_p=0.5)
FP32 = np.array([[4, 0, 0], [0, 1, 0], [0, 0, 3], [2, 0, 0]], np.float32)
INT8 = np.array([[4, 0, 0], [1.5, 1, 0], [0, 4, 3], [0, 0, 2]], np.float32)


def made(fp32: np.ndarray, int8: np.ndarray, gold: np.ndarray) -> Fidelity:
    names, kind = ((), "regression") if fp32.shape[1] == 1 else (LABELS, "classification")
    return fidelity(fp32, int8, gold, names, kind=TASK_KINDS[kind], reference="student-fp32", split="dev", delta=DELTA)


def test_flips_have_rows_names_and_whom_gold_agrees_with() -> None:
    found = made(FP32, INT8, np.array([0, 0, 2, 1]))
    assert [(flip.row, flip.fp32, flip.int8, flip.gold) for flip in found.flipped] == [
        (3, "yes", "maybe", "fp32"),
        (4, "no", "yes", "neither"),
        (2, "maybe", "no", "int8"),
    ]
    assert found.flipped[0].confidence == pytest.approx(np.exp(3) / (np.exp(3) + 2), abs=1e-4)
    assert (found.flips, found.flip_rate, found.examples) == (3, 0.75, 4)
    assert (found.mean_logit_difference, found.worst_logit_difference) == (pytest.approx(9.5 / 12), 4.0)
    assert (found.reference, found.split, found.delta) == ("student-fp32", "dev", DELTA)


def test_a_model_beside_itself() -> None:
    found = made(FP32, FP32.copy(), np.array([0, 1, 2, 2]))
    assert (found.flips, found.flip_rate, found.flipped) == (0, 0.0, ())
    assert (found.mean_logit_difference, found.worst_logit_difference) == (0.0, 0.0)
    assert found.fp32_calibration_error == found.int8_calibration_error
    assert found.fp32_calibration_error is not None


def test_regression_decides_nothing() -> None:
    found = made(np.array([[1.0], [2.0]]), np.array([[1.5], [2.0]]), np.array([1.2, 2.0], np.float32))
    assert (found.flips, found.flip_rate, found.flipped) == (None, None, ())
    assert (found.fp32_calibration_error, found.int8_calibration_error) == (None, None)
    assert (found.mean_logit_difference, found.worst_logit_difference) == (0.25, 0.5)
