"""The one threshold at which the labels of a multilabel task are given."""

from __future__ import annotations

import numpy as np
import pytest

from compress.metrics import LabelsHeadline
from compress.tasks import TASK_KINDS

THRESHOLD = TASK_KINDS["multilabel"].threshold
F1 = LabelsHeadline(("f1_micro", "f1_macro"))


def found(outputs: np.ndarray, gold: np.ndarray, headline: LabelsHeadline = F1) -> float:
    assert THRESHOLD is not None
    return THRESHOLD(outputs, gold, headline)


def test_a_model_that_is_never_sure_gives_labels_again():
    rng = np.random.default_rng(0)
    gold = (rng.random((300, 4)) < 0.1).astype(np.uint8)
    outputs = rng.normal(size=(300, 4)) + 4 * gold - 6
    assert F1(outputs, gold) < 10
    assert F1(outputs - found(outputs, gold), gold) > 80


def test_no_threshold_of_a_fine_grid_is_better():
    rng = np.random.default_rng(1)
    gold = (rng.random((200, 3)) < 0.3).astype(np.uint8)
    outputs = rng.normal(size=(200, 3)) + 1.5 * gold - 1
    best = max(F1(outputs - by, gold) for by in np.linspace(-4, 4, 801))
    assert F1(outputs - found(outputs, gold), gold) == pytest.approx(best, abs=0.5)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_it_moves_with_the_outputs(shift: float):
    rng = np.random.default_rng(2)
    gold = (rng.random((200, 3)) < 0.3).astype(np.uint8)
    outputs = rng.normal(size=(200, 3)) + gold - 2
    assert found(outputs + shift, gold) == pytest.approx(found(outputs, gold) + shift)


def test_where_nothing_is_gained_it_is_zero():
    gold = np.array([[1, 0], [0, 1], [1, 1]], np.uint8)
    outputs = np.where(gold, 3.0, -3.0)
    assert found(outputs, gold) == 0
    assert found(outputs, np.zeros_like(gold)) == 0
    assert found(np.random.default_rng(0).normal(size=(3, 2)), gold, LabelsHeadline(("mean_average_precision",))) == 0


def test_other_kinds_have_none():
    assert [name for name, kind in TASK_KINDS.items() if kind.threshold is not None] == ["multilabel", "span"]
