"""The decision thresholds of a multilabel task: one for all labels, and one per label."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from compress.metrics import LabelsHeadline
from compress.tasks import TASK_KINDS
from compress.tasks.label_thresholds import (
    FEWEST_POSITIVES,
    PRIOR_POSITIVES,
    best_f1_threshold,
    label_thresholds,
    own_thresholds,
    shared_threshold,
)

F1 = LabelsHeadline(("f1_micro", "f1_macro"))


def test_a_model_that_is_never_sure_gives_labels_again():
    rng = np.random.default_rng(0)
    gold = (rng.random((300, 4)) < 0.1).astype(np.uint8)
    outputs = rng.normal(size=(300, 4)) + 4 * gold - 6
    assert F1(outputs, gold) < 10
    assert F1(outputs - shared_threshold(outputs, gold, F1), gold) > 80


def test_no_threshold_of_a_fine_grid_is_better():
    rng = np.random.default_rng(1)
    gold = (rng.random((200, 3)) < 0.3).astype(np.uint8)
    outputs = rng.normal(size=(200, 3)) + 1.5 * gold - 1
    best = max(F1(outputs - by, gold) for by in np.linspace(-4, 4, 801))
    assert F1(outputs - shared_threshold(outputs, gold, F1), gold) == pytest.approx(best, abs=0.5)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_it_moves_with_the_outputs(shift: float):
    rng = np.random.default_rng(2)
    gold = (rng.random((200, 3)) < 0.3).astype(np.uint8)
    outputs = rng.normal(size=(200, 3)) + gold - 2
    assert shared_threshold(outputs + shift, gold, F1) == pytest.approx(shared_threshold(outputs, gold, F1) + shift)


def test_where_nothing_is_gained_it_is_zero():
    gold = np.array([[1, 0], [0, 1], [1, 1]], np.uint8)
    outputs = np.where(gold, 3.0, -3.0)
    ranks = LabelsHeadline(("mean_average_precision",))
    for choose in (shared_threshold, label_thresholds):
        assert not np.any(choose(outputs, gold, F1))
        assert not np.any(choose(outputs, np.zeros_like(gold), F1))
        assert not np.any(choose(np.random.default_rng(0).normal(size=(3, 2)), gold, ranks))
        many = np.random.default_rng(1).integers(0, 2, (200, 4)).astype(np.uint8)
        assert not np.any(choose(np.random.default_rng(2).normal(size=(200, 4)), many, ranks))


def moved(count: int, offsets: tuple[float, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs and gold, [count, label]; the labels differ only in their offsets."""
    rng = np.random.default_rng(seed)
    gold = (rng.random((count, len(offsets))) < 0.3).astype(np.uint8)
    return rng.normal(size=gold.shape) + 3 * gold - 1.5 + np.array(offsets), gold


@pytest.mark.parametrize("seed", range(3))
def test_the_best_f1_of_a_label_is_no_worse_than_at_any_output(seed: int):
    rng = np.random.default_rng(seed)
    gold = (rng.random(60) < 0.3).astype(np.uint8)
    outputs = np.round(rng.normal(size=60) + gold, 1)  # many are equal

    def f1(threshold: float) -> float:
        positives = outputs > threshold
        return 2 * (positives & (gold > 0)).sum() / (positives.sum() + gold.sum())

    threshold = best_f1_threshold(outputs, gold, 0.3)
    assert f1(threshold) == pytest.approx(max(f1(each) for each in np.unique(outputs)))
    assert not np.isclose(outputs, threshold).any(), "a rounded output must not change the decision"


def test_of_equal_thresholds_the_nearest_is_taken():
    outputs, gold = np.array([5.0, 4.0, 3.0, 2.0, 1.0]), np.array([1, 0, 0, 1, 0], np.uint8)
    assert best_f1_threshold(outputs, gold, 9.0) == 4.5  # 2/3: precision 1/1, recall 1/2
    assert best_f1_threshold(outputs, gold, 0.0) == 1.5  # 2/3: precision 2/4, recall 2/2


def test_where_outputs_are_equal_or_no_example_has_the_label_it_is_the_shared_one():
    assert best_f1_threshold(np.full(5, 2.0), np.array([1, 0, 1, 0, 0], np.uint8), 0.7) == 0.7
    assert best_f1_threshold(np.arange(5.0), np.zeros(5, np.uint8), 0.7) == 0.7


def test_a_labels_own_threshold_weighs_as_much_as_it_has_positive_examples():
    outputs, gold = moved(400, (0.0, 3.0, -3.0))
    gold[np.flatnonzero(gold[:, 2])[FEWEST_POSITIVES - 1 :], 2] = 0
    thresholds, count = own_thresholds(outputs, gold, 0.5), gold[:, 1].sum()
    best = best_f1_threshold(outputs[:, 1], gold[:, 1], 0.5)
    assert thresholds[1] == pytest.approx((PRIOR_POSITIVES * 0.5 + count * best) / (PRIOR_POSITIVES + count))
    assert thresholds[2] == 0.5, "one example too few"
    gold[np.flatnonzero(gold[:, 2] == 0)[0], 2] = 1
    assert own_thresholds(outputs, gold, 0.5)[2] != 0.5


def test_labels_that_are_moved_apart_have_their_own_and_others_one():
    offsets = (0.0, 3.0, -3.0)
    outputs, gold = moved(400, offsets)
    thresholds = label_thresholds(outputs, gold, F1)
    np.testing.assert_allclose(thresholds - thresholds[0], offsets, atol=1)
    more, others = moved(5000, offsets, seed=1)
    assert F1(more - thresholds, others) > F1(more - shared_threshold(outputs, gold, F1), others) + 5
    assert len(set(label_thresholds(*moved(100, (0.0, 0.0, 0.0)), F1).tolist())) == 1


def test_thresholds_of_labels_are_never_worse_than_one_on_their_split():
    for seed in range(5):
        outputs, gold = moved(60, (0.0, 0.5, -0.5), seed)
        for names in (("f1_micro",), ("f1_macro",), ("accuracy",)):
            headline = LabelsHeadline(names)
            one = shared_threshold(outputs, gold, headline)
            assert headline(outputs - label_thresholds(outputs, gold, headline), gold) >= headline(outputs - one, gold)


@pytest.mark.slow
def test_they_pay_on_other_texts_and_cost_nothing_where_labels_are_moved_alike(monkeypatch: pytest.MonkeyPatch):
    """Uses the benchmark's draws: gains over one threshold in mean micro and macro F1."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    gains = importlib.import_module("label_thresholds").gains
    apart, alike = gains(300, 1.0, 30, 2), gains(100, 0.0, 60, 2)
    chosen = -1
    assert (apart.mean(axis=0)[chosen] > 1).all()
    assert (alike.mean(axis=0)[chosen] > -0.3).all()
    assert (alike.mean(axis=0)[0] < -0.5).all(), "what each label's best F1 alone costs"


def test_other_kinds_have_none():
    assert [name for name, kind in TASK_KINDS.items() if kind.fit_threshold is not None] == ["multilabel", "span"]
