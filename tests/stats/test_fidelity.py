"""Flips, logit differences and calibration errors, against manual computation and known distributions."""

from __future__ import annotations

import numpy as np
import pytest

from compress.runtime.kinds.classification import softmax
from compress.stats.fidelity import calibration_error, differ, flip_positions, logit_difference, most_confident

rng = np.random.default_rng(0)
LOGITS = rng.normal(size=(200, 3)).astype(np.float32) * 3
GOLD = rng.integers(0, 3, 200)


def of(confidence: np.ndarray) -> np.ndarray:
    """Return logits of two classes in which class 1 has this probability."""
    return np.stack([np.zeros_like(confidence), np.log(confidence / (1 - confidence))], axis=1)


def flips(fp32: np.ndarray, int8: np.ndarray) -> list[int]:
    return flip_positions(fp32.argmax(axis=1), int8.argmax(axis=1), softmax(fp32).max(axis=1)).tolist()


def calibration(logits: np.ndarray, gold: np.ndarray, **bins: int) -> float:
    probabilities = softmax(logits)
    return calibration_error(probabilities.max(axis=1), probabilities.argmax(axis=1) == gold, **bins)


def test_a_model_beside_itself_differs_in_nothing() -> None:
    same = LOGITS.copy()
    assert flips(LOGITS, same) == []
    assert logit_difference(LOGITS, same) == (0.0, 0.0)
    assert calibration(LOGITS, GOLD) == calibration(same, GOLD) > 0


def test_planted_flips_are_found_the_most_confident_first() -> None:
    int8 = LOGITS.copy()
    sure = softmax(LOGITS).max(axis=1)
    unsure, most_confident = int(sure.argmin()), int(sure.argmax())
    for row in (unsure, 17, most_confident):
        int8[row] = np.roll(LOGITS[row], 1)
    assert flips(LOGITS, int8) == [most_confident, 17, unsure]


def test_equal_confidence_keeps_the_order_of_the_file() -> None:
    fp32 = np.tile([[1.0, 0.0]], (40, 1))
    assert flips(fp32, fp32[:, ::-1]) == list(range(40))


def test_two_models_part_first_where_the_less_sure_is_surest() -> None:
    other = rng.normal(size=LOGITS.shape) * 3
    one, two = LOGITS.argmax(axis=1), other.argmax(axis=1)
    sure = softmax(LOGITS).max(axis=1), softmax(other).max(axis=1)
    rows = [row for row in range(200) if one[row] != two[row]]
    by_hand = sorted(rows, key=lambda row: (-min(sure[0][row], sure[1][row]), row))
    assert len(by_hand) > 20
    assert most_confident(one, two, sure, 7).tolist() == by_hand[:7]
    assert most_confident(one, two, sure, 1000).tolist() == by_hand
    assert most_confident(one, one, (sure[0], sure[0]), 7).tolist() == []


def test_logit_differences_by_hand() -> None:
    fp32, int8 = np.array([[1.0, -1.0], [0.5, 0.0]], np.float32), np.array([[1.5, -1.0], [0.5, 0.25]], np.float32)
    assert logit_difference(fp32, int8) == (0.1875, 0.5)


def test_calibration_error_by_hand() -> None:
    """Four at 0.9, three right; two at 0.6, one right: 4/6 · |0.75 − 0.9| + 2/6 · |0.5 − 0.6|."""
    logits = of(np.array([0.9, 0.9, 0.9, 0.9, 0.6, 0.6]))
    gold = np.array([1, 1, 1, 0, 1, 0])
    assert calibration(logits, gold) == pytest.approx(100 * (0.6 + 0.2) / 6)


def test_gaps_cancel_within_a_bin_and_not_between_bins() -> None:
    logits = of(np.array([0.9, 0.9, 0.65, 0.65]))  # right: one of the confident, both of the others
    gold = np.array([1, 0, 1, 1])
    assert calibration(logits, gold) == pytest.approx(100 * (0.4 + 0.35) / 2)
    assert calibration(logits, gold, bins=1) == pytest.approx(100 * abs(0.75 - 0.775))


def test_a_bin_holds_its_upper_edge() -> None:
    """With two bins, 0.5 is alone in the first, so its gap does not cancel the other's."""
    logits, gold = np.array([[0.0, 0.0], [0.0, 50.0]]), np.array([0, 0])  # 0.5 and right, 1 and wrong
    assert calibration(logits, gold, bins=2) == pytest.approx(100 * (0.5 + 1) / 2)


def test_what_is_right_as_often_as_it_says_is_calibrated() -> None:
    confidence = rng.uniform(0.5, 1, 200_000)
    gold = (rng.random(200_000) < confidence).astype(int)
    assert calibration(of(confidence), gold) < 0.5
    overconfident = 3 * of(confidence)
    assert calibration(overconfident, gold) > 10


def test_answers_of_several_parts_differ_where_any_part_does() -> None:
    one, other = np.array([[0, 1], [1, 1], [0, 0]]), np.array([[0, 1], [1, 0], [1, 1]])
    assert differ(one, other).tolist() == [False, True, True]
    assert flip_positions(one, other, np.array([0.9, 0.6, 0.7])).tolist() == [2, 1]
