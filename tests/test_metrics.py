"""The headline score against scikit-learn and SciPy, on the whole and on resamples."""

from __future__ import annotations

import numpy as np
import pytest
from metric_references import CLASSIFICATION, REGRESSION, flipped, headline_of, one_hot, reference, two_models

from compress.errors import CompressError
from compress.metrics import ClassHeadline, CorrelationHeadline
from compress.metrics.correlation import draws


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_headline_is_the_metric_of_scikit_learn_and_scipy(name: str) -> None:
    for seed in range(3):
        base, other, gold = two_models(name, 60, seed)
        for output in (base, other):
            assert headline_of(name)(output, gold) == pytest.approx(reference(name)(output, gold), abs=1e-9)


@pytest.mark.parametrize("classes", [3, 120])  # a matrix product; counting
@pytest.mark.parametrize("name", ["accuracy", "f1_macro", "matthews"])
def test_headline_for_several_classes(name: str, classes: int) -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(classes, size=200)
    output = flipped(gold, 0.4, rng, classes)
    assert headline_of(name)(output, gold) == pytest.approx(reference(name)(output, gold), abs=1e-9)


def test_headline_is_the_mean_of_its_metrics_and_f1_can_count_another_class() -> None:
    from sklearn.metrics import f1_score

    base, _, gold = two_models("f1", 80, 0)
    both = (reference("accuracy")(base, gold) + reference("f1")(base, gold)) / 2
    assert ClassHeadline(("accuracy", "f1"))(base, gold) == pytest.approx(both)
    assert ClassHeadline(("f1",), positive=0)(base, gold) == pytest.approx(
        100 * f1_score(gold, base.argmax(1), pos_label=0)
    )


@pytest.mark.parametrize("name", REGRESSION)
def test_weights_score_as_the_repeated_examples_do(name: str) -> None:
    """Ranks included: a resample is ranked again, not given the ranks of the whole."""
    base, _, gold = two_models(name, 50, 1)
    weights = next(draws(50, 20, np.random.default_rng(0)))
    points = CorrelationHeadline((name,)).of_weights([base[:, 0], gold], weights)[0]
    for counts, point in zip(weights.astype(int), points, strict=True):
        repeated = np.repeat(np.arange(50), counts)
        assert point == pytest.approx(reference(name)(base[repeated], gold[repeated]), abs=1e-9)


def test_constant_predictions_score_nothing() -> None:
    gold = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0])
    assert CorrelationHeadline(REGRESSION)(np.ones((6, 1)), gold) == 0.0
    classes = np.array([0, 0, 1, 1, 0, 1])
    assert ClassHeadline(("matthews",))(one_hot(np.zeros(6, dtype=int)), classes) == 0.0


@pytest.mark.parametrize("headline", [ClassHeadline, CorrelationHeadline])
@pytest.mark.parametrize("metrics", [("accuracy", "pearson"), ("exactness",), ()])
def test_metrics_that_do_not_go_together_are_refused(headline: type, metrics: tuple[str, ...]) -> None:
    with pytest.raises(CompressError, match="expected metrics of one kind"):
        headline(metrics)
