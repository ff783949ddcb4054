"""Intervals and tests against independent references: manual resampling, exact tests, SciPy, numbers computed by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from metric_references import BY_HAND, CLASSIFICATION, REGRESSION, headline_of, one_hot, two_models, worse

from compress.errors import CompressError
from compress.metrics import ClassHeadline, CorrelationHeadline
from compress.results.fidelity import Delta
from compress.stats.significance import (
    FEWEST,
    Interval,
    Paired,
    half_width,
    mcnemar,
    mean_over_tasks,
    paired_bootstrap,
    paired_bootstrap_seeds,
    recorded_over_seeds,
    recorded_over_tasks,
)

ACCURACY = ClassHeadline(("accuracy",))
Models = tuple[np.ndarray, np.ndarray, np.ndarray]


def discordant(examples: int, base_only: int, other_only: int, seed: int = 0) -> Models:
    """Return logits of base and other, and gold: only base is right on the first examples, only other on the next ones."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(2, size=examples)
    right = rng.random((2, examples)) < 0.9
    right[1] = right[0]
    right[:, :base_only] = [[True], [False]]
    right[:, base_only : base_only + other_only] = [[False], [True]]
    base, other = (one_hot(np.where(each, gold, 1 - gold)) for each in right)
    return base, other, gold


def excludes_zero(bounds: Interval) -> bool:
    return not bounds[1] <= 0 <= bounds[2]


def interval(delta: Delta) -> Interval:
    return delta.points, delta.low, delta.high


def delta_of(points: float, low: float, high: float) -> Delta:
    return Delta(points=points, low=low, high=high, mcnemar_p=None)


def swap_test(metric: ClassHeadline, models: Models, rng: np.random.Generator) -> float:
    """Return the p of the observed difference if each example's two answers are swapped with probability 1/2."""
    base, other, gold = models[0].argmax(1), models[1].argmax(1), models[2]
    observed = abs(metric(models[1], gold) - metric(models[0], gold))
    patterns, sizes = np.unique(np.column_stack([gold, base, other]), axis=0, return_counts=True)
    swapped = rng.binomial(sizes, 0.5, size=(4000, len(sizes)))
    both_ways = np.concatenate([patterns, patterns[:, [0, 2, 1]]])
    points = metric.of_counts(both_ways, np.concatenate([sizes - swapped, swapped], axis=1), 2)
    return float(np.mean(abs(points[1] - points[0]) >= observed - 1e-9))


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_the_interval_agrees_with_resampling_by_hand(name: str) -> None:
    base, other, gold = two_models(name, 300, 7)
    metric = BY_HAND[name]
    rng = np.random.default_rng(99)
    differences = []
    for _ in range(2000):
        chosen = rng.integers(len(gold), size=len(gold))
        differences.append(100 * (metric(other[chosen], gold[chosen]) - metric(base[chosen], gold[chosen])))
    expected = np.quantile(differences, [0.025, 0.975])
    points, low, high = paired_bootstrap(headline_of(name), base, other, gold, samples=4000)
    assert points == pytest.approx(100 * (metric(other, gold) - metric(base, gold)), abs=1e-6)
    # Two Monte Carlo estimates of a quantile; one has two extra examples on which the models differ, besides about 78.
    assert [low, high] == pytest.approx(expected, abs=(expected[1] - expected[0]) / 6)


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_a_better_other_is_positive_and_a_worse_one_negative(name: str) -> None:
    good, bad, gold = two_models(name, 600, 3)
    for base, other, sign in ((bad, good, 1), (good, bad, -1)):
        points, low, high = (sign * value for value in paired_bootstrap(headline_of(name), base, other, gold))
        assert points > 0 and min(low, high) > 0


@pytest.mark.parametrize(("base_only", "other_only"), [(5, 0), (0, 5), (1, 0), (11, 3), (0, 0), (7, 7)])
def test_few_changes_are_no_difference_where_mcnemar_finds_none(base_only: int, other_only: int) -> None:
    models = discordant(872, base_only, other_only)
    assert mcnemar(models[0].argmax(1) == models[2], models[1].argmax(1) == models[2]) >= 0.05
    points, low, high = paired_bootstrap(ACCURACY, *models)
    assert points == pytest.approx(100 * (other_only - base_only) / 872)
    assert low <= 0 <= high and low < high


@pytest.mark.parametrize("examples", [40, 872])
def test_an_interval_without_zero_agrees_with_mcnemars_exact_test(examples: int) -> None:
    """On every small table, the interval never finds more than the exact test, and rarely less."""
    differences, missed = 0, 0
    for base_only in range(15):
        for other_only in (0, 1, 2, 3, 5, 8, 12):
            models = discordant(examples, base_only, other_only)
            interval = paired_bootstrap(ACCURACY, *models, samples=1000)
            significant = mcnemar(models[0].argmax(1) == models[2], models[1].argmax(1) == models[2]) < 0.05
            assert interval[1] <= interval[0] <= interval[2] and interval[1] < interval[2]
            assert significant or not excludes_zero(interval), (base_only, other_only)
            differences, missed = differences + significant, missed + (significant and not excludes_zero(interval))
    assert differences >= 30 and missed <= 0.1 * differences


@pytest.mark.parametrize("metrics", [("f1",), ("f1_macro",), ("matthews",), ("accuracy", "f1")])
def test_other_metrics_find_no_more_than_a_swap_test(metrics: tuple[str, ...]) -> None:
    """On random small tables. The swap test is exact, the interval approximate: its .05 may be .08 in the swap test."""
    rng, metric = np.random.default_rng(0), ClassHeadline(metrics)
    differences = 0
    for trial in range(60):
        examples = int(rng.choice([40, 100, 277, 872]))
        base_only, other_only = rng.integers(14, size=2) * (1, trial % 3)
        models = discordant(examples, min(base_only, 14), min(other_only, 14), seed=trial)
        interval = paired_bootstrap(metric, *models, samples=1000)
        assert interval[1] <= interval[0] <= interval[2] and interval[1] < interval[2]
        if excludes_zero(interval):
            differences += 1
            assert base_only + other_only >= FEWEST
            assert swap_test(metric, models, rng) < 0.08
    assert differences > 10


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_equal_predictions_have_an_interval_with_a_width(name: str) -> None:
    """None of n examples differ: with 95% certainty fewer than 3.7 of n do (Clopper & Pearson), 1 - .025^(1/n) of them."""
    base, _, gold = two_models(name, 400, 0)
    same = base * 2 if name in CLASSIFICATION else base * 3 + 100  # a correlation ignores scale and offset
    points, low, high = paired_bootstrap(headline_of(name), base, same, gold)
    assert points == 0.0
    assert low < 0 < high and -low == pytest.approx(high, rel=0.35)
    if name == "accuracy":
        exact = 100 * (1 - 0.025 ** (1 / 400))
        assert high == pytest.approx(exact, rel=0.25)


def test_a_single_changed_answer_of_a_regression_is_no_difference() -> None:
    base, _, gold = two_models("pearson", 400, 0)
    other = base.copy()
    other[7] += 3
    assert not excludes_zero(paired_bootstrap(CorrelationHeadline(REGRESSION), base, other, gold))


@pytest.mark.parametrize("examples", range(1, 12))
def test_few_examples_are_never_called_different(examples: int) -> None:
    """All wrong against all right: with fewer than six examples, chance does that in more than one of twenty cases."""
    gold = np.zeros(examples, dtype=np.int64)
    points, low, high = paired_bootstrap(ACCURACY, one_hot(1 - gold), one_hot(gold), gold)
    assert points == high == 100.0
    assert low <= 0 or mcnemar(gold == 1, gold == 0) < 0.05
    assert (low > 0) == (examples >= FEWEST)


def test_resamples_of_one_value_score_nothing() -> None:
    gold = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0])
    rising, constant = np.arange(6.0)[:, None], np.ones((6, 1))
    points, low, high = paired_bootstrap(CorrelationHeadline(REGRESSION), constant, rising, gold)
    assert 0 <= low <= points <= high <= 100


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    base, other, gold = two_models("spearman", 90, 0)
    first, again, third = (
        paired_bootstrap(CorrelationHeadline(REGRESSION), base, other, gold, seed=s) for s in (0, 0, 1)
    )
    assert first == again != third


def test_five_answers_changed_alike_by_every_seed_are_no_difference() -> None:
    base, other, gold = discordant(872, 0, 5)
    points, low, _ = paired_bootstrap_seeds(ACCURACY, [(base, other)] * 3, gold)
    assert points > 0 and low <= 0


def test_half_width_of_the_limits() -> None:
    """If all variance is over examples: the normal interval. If all is over seeds: Student's t for a mean."""
    observed = np.array([1.0, 2.0, 4.0])
    assert half_width(np.ones(3), 4.0) == pytest.approx(1.96 * 2, rel=1e-4)
    assert half_width(observed, 0.0) == pytest.approx(4.30265 * observed.std(ddof=1) / 3**0.5, rel=1e-4)
    assert half_width(np.ones(3), 0.0) == 0


def test_seeds_far_apart_do_not_reach_beyond_what_scores_can_differ_by() -> None:
    gold, base = np.tile([0, 1], 200), worse(400, 0)
    far = paired_bootstrap_seeds(ACCURACY, [(base, worse(400, count)) for count in (10, 390)], gold)
    deltas = [delta_of(-2.5, -4, -1), delta_of(-97.5, -99, -96)]
    assert far == interval(recorded_over_seeds(deltas, ["accuracy"])) == (-50.0, -100, 100)
    signed = ClassHeadline(("matthews",))  # from -100 to 100 points
    points, low, high = paired_bootstrap_seeds(signed, [(base, worse(400, count)) for count in (10, 390)], gold)
    assert points == pytest.approx(-100, abs=0.1) and (low, high) == (-200, 200)
    assert interval(recorded_over_seeds(deltas, ["accuracy", "matthews"])) == (-50.0, -200, 200)


def test_a_mean_over_tasks_is_made_as_one_task_is() -> None:
    """Two tasks with independent examples: a seed's differences are averaged first, then compared between seeds."""
    gold, base = np.tile([0, 1], 1000), worse(2000, 0)
    counts = ((60, 100, 80), (110, 130, 60))
    tasks = [Paired(ACCURACY, [(base, worse(2000, count)) for count in each], gold) for each in counts]
    points, low, high = interval(mean_over_tasks(tasks, samples=8000))
    means = -np.mean(counts, axis=0) / 20
    gaps = [[(output.argmax(1) == gold) - 1.0 for _, output in task.pairs] for task in tasks]
    shared = sum(np.cov(part, ddof=0)[~np.eye(3, dtype=bool)].mean() for part in gaps) * 1e4 / 2000 / 4
    assert points == pytest.approx(means.mean())
    assert (high - low) / 2 == pytest.approx(float(half_width(means, shared)), rel=0.04)
    assert interval(mean_over_tasks(tasks[:1])) == paired_bootstrap_seeds(ACCURACY, tasks[0].pairs, gold)


def test_a_mean_over_tasks_from_their_intervals_is_about_that_from_their_answers() -> None:
    gold, base = np.tile([0, 1], 1000), worse(2000, 0)
    tasks = [Paired(ACCURACY, [(base, worse(2000, count))], gold) for count in (60, 110, 400)]
    recorded = recorded_over_tasks([mean_over_tasks([task], samples=8000) for task in tasks])
    assert interval(recorded) == pytest.approx(interval(mean_over_tasks(tasks, samples=8000)), rel=0.03)
    two = [delta_of(-2.0, -3.0, 0.0), delta_of(4.0, 1.0, 5.0)]
    assert interval(recorded_over_tasks(two)) == pytest.approx((1, 1 - 10**0.5 / 2, 1 + 5**0.5 / 2))
    assert recorded_over_tasks(two[:1]) == two[0]


def test_a_mean_over_tasks_with_few_changes_may_be_chance() -> None:
    tasks = [Paired(ACCURACY, [(base, other)], gold) for base, other, gold in (discordant(40, n, 0) for n in (2, 3))]
    assert not excludes_zero(interval(mean_over_tasks(tasks)))


def test_mcnemar_by_hand() -> None:
    """Base alone is right on 1 of 10 discordant pairs: 2 · (C(10,0) + C(10,1)) / 2¹⁰ = 22 / 1024."""
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
    with pytest.raises(CompressError, match=r"each of the 3 examples.*found \[2, 3\]"):
        paired_bootstrap(ACCURACY, np.zeros((3, 2)), np.zeros((2, 2)), np.zeros(3, dtype=int))
    with pytest.raises(CompressError, match="at least 1"):
        paired_bootstrap(ACCURACY, np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=int))
    with pytest.raises(CompressError, match="at least 1"):
        mcnemar(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    one, two = (Paired(ACCURACY, [(worse(4, 0), worse(4, 1))] * seeds, np.tile([0, 1], 2)) for seeds in (1, 2))
    with pytest.raises(CompressError, match=r"as many seeds on every task, found \[1, 2\]"):
        mean_over_tasks([one, two])


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, compress.stats.significance; print([m for m in ('torch', 'scipy', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
