"""Multilabel metrics against scikit-learn, and their resamples against a loop over drawn examples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from compress.metrics import FEWEST, LabelsHeadline
from compress.stats.significance import paired_bootstrap

EVERY = ("f1_micro", "f1_macro", "mean_average_precision", "accuracy")


def noisy_outputs(seed: int, examples: int = 60, labels: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.random((examples, labels)) < np.linspace(0.05, 0.6, labels)
    outputs = np.round(rng.normal(size=gold.shape) + 1.5 * gold - 0.7, 1)  # rounded, so that some outputs are equal
    return outputs, gold.astype(np.uint8)


@pytest.mark.parametrize("seed", range(6))
def test_metrics_agree_with_scikit_learn(seed: int) -> None:
    outputs, gold = noisy_outputs(seed)
    predictions = outputs > 0
    seen = gold.any(0) | predictions.any(0)
    expected = {
        "f1_micro": sk.f1_score(gold, predictions, average="micro"),
        "f1_macro": sk.f1_score(gold[:, seen], predictions[:, seen], average="macro", zero_division=0),  # type: ignore[arg-type]
        "mean_average_precision": sk.average_precision_score(
            gold[:, gold.any(0)], outputs[:, gold.any(0)], average="macro"
        ),
        "accuracy": sk.accuracy_score(gold, predictions),
    }
    for name, share in expected.items():
        assert LabelsHeadline((name,))(outputs, gold) == pytest.approx(100 * share, abs=1e-9), name
    assert LabelsHeadline(EVERY)(outputs, gold) == pytest.approx(100 * np.mean(list(expected.values())), abs=1e-9)


def test_labels_that_are_never_gold_nor_given_count_nowhere() -> None:
    outputs, gold = noisy_outputs(1)
    wider = [np.column_stack([part, column]) for part, column in ((outputs, -np.ones(60)), (gold, np.zeros(60)))]
    for name in ("f1_macro", "mean_average_precision"):
        metric = LabelsHeadline((name,))
        assert metric(*wider) == pytest.approx(metric(outputs, gold))


def test_nothing_gold_and_nothing_given_is_no_division_by_zero() -> None:
    outputs, gold = -np.ones((4, 3)), np.zeros((4, 3), np.uint8)
    assert [LabelsHeadline((name,))(outputs, gold) for name in EVERY] == [0, 0, 0, 100]


@pytest.mark.parametrize("name", EVERY)
def test_resamples_are_the_metric_of_drawn_examples(name: str) -> None:
    outputs, gold = noisy_outputs(2)
    metric = LabelsHeadline((name,))
    other = outputs + np.random.default_rng(5).normal(size=outputs.shape)
    assert metric.count_changed([(outputs, other)], gold) >= FEWEST
    drawn = metric.resampled([(outputs, other)], gold, 50, np.random.default_rng(9))
    counts = np.random.default_rng(9).integers(60, size=(50, 60))  # as `draws` draws them
    for sample, rows in enumerate(counts):
        for place, each in enumerate((outputs, other)):
            assert drawn[place, sample] == pytest.approx(metric(each[rows], gold[rows]), abs=1e-9)


def test_one_flip_is_not_told_from_chance_and_many_are() -> None:
    outputs, gold = noisy_outputs(3, examples=300)
    metric = LabelsHeadline(("f1_micro",))
    once = outputs.copy()
    once[0] = np.where(gold[0] > 0, 1.0, -1.0)
    _, low, high = paired_bootstrap(metric, outputs, once, gold)
    assert low < 0 < high
    _, low, _ = paired_bootstrap(metric, outputs, np.where(gold > 0, 1.0, -1.0), gold)
    assert low > 0


def test_average_precision_sees_changes_of_outputs_that_flip_nothing() -> None:
    outputs, _ = noisy_outputs(4)
    louder = outputs * np.linspace(1, 2, len(outputs))[:, None]
    assert not LabelsHeadline(("f1_micro",)).differ(outputs, louder).any()
    assert LabelsHeadline(("mean_average_precision",)).differ(outputs, louder).any()
