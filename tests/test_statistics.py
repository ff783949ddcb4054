"""Intervals and tests against independent references (SciPy, scikit-learn, resampling by hand) and simulated truth."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compress.errors import CompressError
from compress.statistics import FEWEST, Headline, _weights, mcnemar, paired_bootstrap, paired_bootstrap_seeds


def one_hot(classes: np.ndarray, number: int = 2) -> np.ndarray:
    return np.eye(number, dtype=np.float32)[classes]


def flipped(gold: np.ndarray, share: float, rng: np.random.Generator, classes: int = 2) -> np.ndarray:
    """Logits of a model that is wrong on about `share` of the examples."""
    wrong = rng.random(len(gold)) < share
    return one_hot(np.where(wrong, (gold + 1) % classes, gold), classes)


def reference(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """The metric as scikit-learn or SciPy computes it, in points."""
    from scipy import stats
    from sklearn import metrics

    table: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
        "accuracy": lambda output, gold: metrics.accuracy_score(gold, output.argmax(1)),
        "f1": lambda output, gold: metrics.f1_score(gold, output.argmax(1)),
        "f1_macro": lambda output, gold: metrics.f1_score(gold, output.argmax(1), average="macro"),
        "matthews": lambda output, gold: metrics.matthews_corrcoef(gold, output.argmax(1)),
        "pearson": lambda output, gold: stats.pearsonr(output[:, 0], gold)[0],
        "spearman": lambda output, gold: stats.spearmanr(output[:, 0], gold)[0],
    }
    return lambda output, gold: float(100 * table[name](output, gold))


def f1_by_hand(predicted: np.ndarray, gold: np.ndarray, positive: int) -> float:
    both = np.sum((predicted == positive) & (gold == positive))
    return float(2 * both / (np.sum(predicted == positive) + np.sum(gold == positive)))


def ranks_by_hand(values: np.ndarray) -> np.ndarray:
    """Mean rank: values below, plus half of the equal ones."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2


BY_HAND: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "accuracy": lambda output, gold: np.mean(output.argmax(1) == gold),
    "f1": lambda output, gold: f1_by_hand(output.argmax(1), gold, 1),
    "f1_macro": lambda output, gold: np.mean([f1_by_hand(output.argmax(1), gold, c) for c in (0, 1)]),
    "matthews": lambda output, gold: np.corrcoef(output.argmax(1), gold)[0, 1],
    "pearson": lambda output, gold: np.corrcoef(output[:, 0], gold)[0, 1],
    "spearman": lambda output, gold: np.corrcoef(ranks_by_hand(output[:, 0]), ranks_by_hand(gold))[0, 1],
}


CLASSIFICATION = ("accuracy", "f1", "f1_macro", "matthews")
REGRESSION = ("pearson", "spearman")


def two_models(name: str, examples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if name in CLASSIFICATION:
        gold = rng.integers(2, size=examples)
        return flipped(gold, 0.1, rng), flipped(gold, 0.2, rng), gold
    gold = np.round(rng.uniform(0, 5, examples), 0)  # ties, as in STS-B
    base = gold[:, None] + rng.normal(size=(examples, 1))
    return base, base + rng.normal(size=(examples, 1)), gold


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_headline_is_the_metric_of_scikit_learn_and_scipy(name: str) -> None:
    for seed in range(3):
        base, other, gold = two_models(name, 60, seed)
        for output in (base, other):
            assert Headline((name,))(output, gold) == pytest.approx(reference(name)(output, gold), abs=1e-9)


@pytest.mark.parametrize("classes", [3, 120])  # a matrix product; counting
@pytest.mark.parametrize("name", ["accuracy", "f1_macro", "matthews"])
def test_headline_for_several_classes(name: str, classes: int) -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(classes, size=200)
    output = flipped(gold, 0.4, rng, classes)
    assert Headline((name,))(output, gold) == pytest.approx(reference(name)(output, gold), abs=1e-9)


def test_headline_is_the_mean_of_its_metrics_and_f1_can_count_another_class() -> None:
    from sklearn.metrics import f1_score

    base, _, gold = two_models("f1", 80, 0)
    both = (reference("accuracy")(base, gold) + reference("f1")(base, gold)) / 2
    assert Headline(("accuracy", "f1"))(base, gold) == pytest.approx(both)
    assert Headline(("f1",), positive=0)(base, gold) == pytest.approx(100 * f1_score(gold, base.argmax(1), pos_label=0))


@pytest.mark.parametrize("name", REGRESSION)
def test_weights_score_as_the_repeated_examples_do(name: str) -> None:
    """Ranks included: a resample is re-ranked, not given the ranks of the whole."""
    base, _, gold = two_models(name, 50, 1)
    weights = next(_weights(50, 20, np.random.default_rng(0)))
    points = Headline((name,))._correlations([base[:, 0], gold], weights)[0]
    for counts, found in zip(weights.astype(int), points, strict=True):
        repeated = np.repeat(np.arange(50), counts)
        assert found == pytest.approx(reference(name)(base[repeated], gold[repeated]), abs=1e-9)


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_fast_path_agrees_with_resampling_by_hand(name: str) -> None:
    base, other, gold = two_models(name, 120, 7)
    metric = BY_HAND[name]
    rng = np.random.default_rng(99)
    differences = []
    for _ in range(2000):
        chosen = rng.integers(len(gold), size=len(gold))
        differences.append(100 * (metric(other[chosen], gold[chosen]) - metric(base[chosen], gold[chosen])))
    expected = np.quantile(differences, [0.025, 0.975])
    points, low, high = paired_bootstrap(Headline((name,)), base, other, gold, samples=4000)
    assert points == pytest.approx(100 * (metric(other, gold) - metric(base, gold)), abs=1e-6)
    # Two Monte Carlo estimates of a quantile: within a sixth of the width.
    assert [low, high] == pytest.approx(expected, abs=(expected[1] - expected[0]) / 6)


def test_any_function_serves_as_metric() -> None:
    base, other, gold = two_models("accuracy", 150, 2)
    slow = paired_bootstrap(lambda output, gold: 100 * BY_HAND["accuracy"](output, gold), base, other, gold)
    fast = paired_bootstrap(Headline(("accuracy",)), base, other, gold)
    assert slow == pytest.approx(fast, abs=(fast[2] - fast[1]) / 6)
    assert slow[0] == pytest.approx(fast[0])


@pytest.mark.parametrize("examples", [150, 1000])
def test_interval_covers_the_truth_as_often_as_it_says(examples: int) -> None:
    from scipy.stats import binomtest

    rng = np.random.default_rng(11)
    truth, trials, covered = -3.0, 400, 0
    for trial in range(trials):
        # Base right 85%, other wrong on 7% more and right on 4% more of all examples: a true drop of 3 points.
        gold = rng.integers(2, size=examples)
        kind = rng.choice(4, size=examples, p=[0.78, 0.07, 0.04, 0.11])
        base_right, other_right = np.isin(kind, (0, 1)), np.isin(kind, (0, 2))
        base = one_hot(np.where(base_right, gold, 1 - gold))
        other = one_hot(np.where(other_right, gold, 1 - gold))
        _, low, high = paired_bootstrap(Headline(("accuracy",)), base, other, gold, samples=500, seed=trial)
        covered += low <= truth <= high
    assert binomtest(covered, trials, 0.95).pvalue > 0.001, f"{covered} of {trials}"


def test_seeds_widen_the_interval_and_it_covers_the_mean_over_seeds() -> None:
    rng = np.random.default_rng(5)
    truth, trials, covered, widths = -2.0, 150, 0, []
    for trial in range(trials):
        gold = rng.integers(2, size=500)
        pairs = []
        for _ in range(3):
            drop = 0.02 + rng.normal() * 0.01
            kind = rng.choice(4, size=500, p=[0.83 - drop, 0.05 + drop, 0.05, 0.07])
            base = one_hot(np.where(np.isin(kind, (0, 1)), gold, 1 - gold))
            other = one_hot(np.where(np.isin(kind, (0, 2)), gold, 1 - gold))
            pairs.append((base, other))
        points, low, high = paired_bootstrap_seeds(Headline(("accuracy",)), pairs, gold, samples=300, seed=trial)
        assert low <= points <= high
        covered += low <= truth <= high
        widths.append(high - low)
    assert covered >= 0.9 * trials
    assert np.mean(widths) < 8  # three seeds' worth of information, not an interval that holds everything


def test_seeds_that_disagree_give_a_wider_interval_than_seeds_that_agree() -> None:
    gold = np.tile([0, 1], 200)
    base = one_hot(gold)

    def worse(examples: int) -> np.ndarray:
        return one_hot(np.where(np.arange(400) < examples, 1 - gold, gold))

    metric = Headline(("accuracy",))
    agree = paired_bootstrap_seeds(metric, [(base, worse(20))] * 3, gold)
    disagree = paired_bootstrap_seeds(metric, [(base, worse(n)) for n in (0, 20, 40)], gold)
    assert agree[0] == disagree[0] == -5.0
    assert disagree[2] - disagree[1] > 1.3 * (agree[2] - agree[1])


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_identical_predictions_differ_by_exactly_nothing(name: str) -> None:
    base, _, gold = two_models(name, 40, 0)
    same = base * 2 if name in CLASSIFICATION else base.copy()
    assert paired_bootstrap(Headline((name,)), base, same, gold) == (0.0, 0.0, 0.0)
    assert paired_bootstrap(reference(name), base, base.copy(), gold, samples=5) == (0.0, 0.0, 0.0)


def test_rescaled_outputs_of_a_regression_are_no_difference() -> None:
    base, _, gold = two_models("pearson", 300, 0)
    assert paired_bootstrap(Headline(REGRESSION), base, base * 3 + 100, gold) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("examples", range(1, 9))
def test_few_examples_are_never_called_different(examples: int) -> None:
    """All wrong against all right: below six examples chance does that in more than one of twenty cases."""
    gold = np.zeros(examples, dtype=np.int64)
    points, low, high = paired_bootstrap(Headline(("accuracy",)), one_hot(1 - gold), one_hot(gold), gold)
    assert points == high == 100.0
    assert (low <= 0) == (examples < FEWEST)
    assert (mcnemar(gold == 1, gold == 0) > 0.05) == (examples < FEWEST)


def test_constant_predictions_and_resamples_of_one_value_score_nothing() -> None:
    gold = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0])
    rising, constant = np.arange(6.0)[:, None], np.ones((6, 1))
    assert Headline(REGRESSION)(constant, gold) == 0.0
    points, low, high = paired_bootstrap(Headline(REGRESSION), constant, rising, gold)
    assert 0 <= low <= points <= high <= 100
    classes = np.array([0, 0, 1, 1, 0, 1])
    assert Headline(("matthews",))(one_hot(np.zeros(6, dtype=int)), classes) == 0.0


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    base, other, gold = two_models("spearman", 90, 0)
    first, again, third = (paired_bootstrap(Headline(REGRESSION), base, other, gold, seed=s) for s in (0, 0, 1))
    assert first == again != third


def test_mcnemar_by_hand() -> None:
    """Base alone right on 1 of 10 discordant pairs: 2 · (C(10,0) + C(10,1)) / 2¹⁰ = 22 / 1024."""
    base = np.array([True] * 1 + [False] * 9 + [True] * 50)
    other = np.array([False] * 1 + [True] * 9 + [True] * 50)
    assert mcnemar(base, other) == mcnemar(other, base) == 22 / 1024
    assert mcnemar(base, base) == 1.0
    assert mcnemar(np.array([True, False]), np.array([False, True])) == 1.0


def test_mcnemar_is_scipys_binomial_test() -> None:
    from scipy.stats import binomtest

    rng = np.random.default_rng(0)
    for examples, share in ((30, 0.5), (400, 0.3), (20_000, 0.52)):
        base, other = rng.random(examples) < 0.5, rng.random(examples) < share
        only = int((base & ~other).sum()), int((other & ~base).sum())
        assert mcnemar(base, other) == pytest.approx(binomtest(only[0], sum(only)).pvalue, rel=1e-6, abs=1e-300)


def test_lengths_that_differ_and_no_examples_are_errors() -> None:
    metric = Headline(("accuracy",))
    with pytest.raises(CompressError, match=r"each of the 3 examples.*found \[2, 3\]"):
        paired_bootstrap(metric, np.zeros((3, 2)), np.zeros((2, 2)), np.zeros(3, dtype=int))
    with pytest.raises(CompressError, match="at least 1"):
        paired_bootstrap(metric, np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=int))
    with pytest.raises(CompressError, match="at least 1"):
        mcnemar(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))


@pytest.mark.parametrize("metrics", [("accuracy", "pearson"), ("exactness",), ()])
def test_metrics_that_do_not_go_together_are_refused(metrics: tuple[str, ...]) -> None:
    with pytest.raises(CompressError, match="expected metrics of one kind"):
        Headline(metrics)


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, compress.statistics; print([m for m in ('torch', 'scipy', 'sklearn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
