"""From logits to the fidelity that a result reports for a quantized model."""

from __future__ import annotations

import numpy as np
import pytest

from compress.pipeline.results.fidelity import disagreements, fidelity
from compress.results.fidelity import Delta, Fidelity
from compress.tasks import TASK_KINDS

LABELS = ("no", "maybe", "yes")
DELTA = Delta(points=-0.5, low=-1.0, high=0.1, mcnemar_p=0.5)
FP32 = np.array([[4, 0, 0], [0, 1, 0], [0, 0, 3], [2, 0, 0]], np.float32)
INT8 = np.array([[4, 0, 0], [1.5, 1, 0], [0, 4, 3], [0, 0, 2]], np.float32)


def fidelity_of(fp32: np.ndarray, int8: np.ndarray, gold: np.ndarray) -> Fidelity:
    names, kind = ((), "regression") if fp32.shape[1] == 1 else (LABELS, "classification")
    return fidelity(fp32, int8, gold, names, kind=TASK_KINDS[kind], reference="student-fp32", split="dev", delta=DELTA)


def test_flips_have_rows_names_and_whom_gold_agrees_with() -> None:
    of_int8 = fidelity_of(FP32, INT8, np.array([0, 0, 2, 1]))
    assert [(flip.row, flip.fp32, flip.int8, flip.gold) for flip in of_int8.flipped] == [
        (3, "yes", "maybe", "fp32"),
        (4, "no", "yes", "neither"),
        (2, "maybe", "no", "int8"),
    ]
    assert of_int8.flipped[0].confidence == pytest.approx(np.exp(3) / (np.exp(3) + 2), abs=1e-4)
    assert (of_int8.flips, of_int8.flip_rate, of_int8.examples) == (3, 0.75, 4)
    assert (of_int8.mean_logit_difference, of_int8.worst_logit_difference) == (pytest.approx(9.5 / 12), 4.0)
    assert (of_int8.reference, of_int8.split, of_int8.delta) == ("student-fp32", "dev", DELTA)


def test_a_model_beside_itself() -> None:
    of_itself = fidelity_of(FP32, FP32.copy(), np.array([0, 1, 2, 2]))
    assert (of_itself.flips, of_itself.flip_rate, of_itself.flipped) == (0, 0.0, ())
    assert (of_itself.mean_logit_difference, of_itself.worst_logit_difference) == (0.0, 0.0)
    assert of_itself.fp32_calibration_error == of_itself.int8_calibration_error
    assert of_itself.fp32_calibration_error is not None


def test_regression_decides_nothing() -> None:
    of_int8 = fidelity_of(np.array([[1.0], [2.0]]), np.array([[1.5], [2.0]]), np.array([1.2, 2.0], np.float32))
    assert (of_int8.flips, of_int8.flip_rate, of_int8.flipped) == (None, None, ())
    assert (of_int8.fp32_calibration_error, of_int8.int8_calibration_error) == (None, None)
    assert (of_int8.mean_logit_difference, of_int8.worst_logit_difference) == (0.25, 0.5)


def test_disagreements_with_the_teacher_say_what_both_are_sure_of() -> None:
    examples = disagreements(FP32, INT8, np.array([0, 0, 2, 1]), LABELS, TASK_KINDS["classification"])
    soft = [np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) for logits in (FP32, INT8)]
    sure = [each.max(axis=1) for each in soft]
    assert [(each.row, each.teacher, each.model, each.gold) for each in examples] == [
        (4, "no", "yes", "neither"),
        (3, "yes", "maybe", "teacher"),
        (2, "maybe", "no", "model"),
    ]
    for each in examples:
        assert each.teacher_confidence == pytest.approx(sure[0][each.row - 1], abs=1e-4)
        assert each.model_confidence == pytest.approx(sure[1][each.row - 1], abs=1e-4)
    lesser = [min(each.teacher_confidence, each.model_confidence) for each in examples]
    assert lesser == sorted(lesser, reverse=True)


def test_no_more_than_ten_disagreements_are_kept_and_scores_have_none() -> None:
    many = np.tile(FP32[:1], (30, 1)), np.tile(INT8[2:3], (30, 1))
    assert [each.row for each in disagreements(*many, np.zeros(30, int), LABELS, TASK_KINDS["classification"])] == [
        *range(1, 11)
    ]
    scores = np.array([[1.0], [2.0]]), np.array([[1.5], [2.5]])
    assert disagreements(*scores, np.array([1.2, 2.0]), (), TASK_KINDS["regression"]) == ()
