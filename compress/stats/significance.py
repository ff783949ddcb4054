"""Whether the difference between two models is more than chance: intervals over examples and seeds, and McNemar's test.

Scores and differences are in points (0-100; correlations and Matthews × 100). Needs numpy, and SciPy for several seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import cast

import numpy as np

from ..errors import CompressError
from ..metrics import FEWEST, Headline, Pairs, check_lengths
from ..results.fidelity import Delta
from .percentiles import CONFIDENCE

Interval = tuple[float, float, float]

_SIGNED = {"matthews", "pearson", "spearman"}  # from -100 to 100 points; other metrics from 0
NORMAL_QUANTILE = 1.959963985  # the normal distribution's quantile at CONFIDENCE, two-sided
_DECIMALS = 9  # rounding error of equal scores computed along two paths must not look like a difference


@dataclass(frozen=True)
class Paired:
    """Two models on the same examples: logits [example, class] of (base, other) for every training seed."""

    metric: Headline
    pairs: Pairs
    gold: np.ndarray


def paired_bootstrap(
    metric: Headline, base: np.ndarray, other: np.ndarray, gold: np.ndarray, *, samples: int = 2000, seed: int = 0
) -> Interval:
    """Return (points, low, high): `metric(other) - metric(base)` with its 95% interval over examples.

    The percentile bootstrap: both models are scored on the same resampled examples (Efron & Tibshirani 1993, ch. 13).
    Resamples are drawn from the examples and two more: one that only the base gets right and one that only the other does.
    So the interval of equal predictions has a width, and a few changes in one direction are not certain; for accuracy these
    are Bonett & Price's counts (2012, J. Educ. Behav. Stat. 37:479). The interval contains 0 if the models differ on fewer
    than six examples, and for accuracy if McNemar's exact p is .05 or more. Spearman's ρ is re-ranked within every resample.

    Raises `CompressError` when there are no examples or the lengths differ.
    """
    return paired_bootstrap_seeds(metric, [(base, other)], gold, samples=samples, seed=seed)


def delta(metric: Headline, base: np.ndarray, other: np.ndarray, gold: np.ndarray) -> Delta:
    """Return `metric(other) - metric(base)` as results record it: with the interval of `paired_bootstrap`, and McNemar's p."""
    points, low, high = paired_bootstrap(metric, base, other, gold)
    return Delta(points=points, low=low, high=high, mcnemar_p=mcnemar_p(metric, base, other, gold))


def paired_bootstrap_seeds(
    metric: Headline,
    pairs: Pairs,
    gold: np.ndarray,
    *,
    samples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the mean difference over training seeds, one (base, other) pair each, on the same examples.

    The interval is for new examples and new seeds: `half_width` explains how the two variances combine. The bootstrap over
    examples determines its shape; it draws the same examples for all seeds.
    """
    difference = mean_over_tasks([Paired(metric, pairs, gold)], samples=samples, seed=seed)
    return difference.points, difference.low, difference.high


def mean_over_tasks(tasks: Sequence[Paired], *, samples: int = 2000, seed: int = 0) -> Delta:
    """Return the mean of the tasks' differences; for several seeds with the p of `p_over_seeds`.

    Tasks share no examples, so those of each are resampled separately. They may share what a seed made (a general student,
    say), so seeds are compared by their means over tasks. Raises `CompressError` if tasks have different numbers of seeds,
    or as `paired_bootstrap` does.
    """
    tasks = [_check_lengths_of(task) for task in tasks]
    if len({len(task.pairs) for task in tasks}) != 1:
        raise CompressError(f"expected as many seeds on every task, found {[len(task.pairs) for task in tasks]}")
    rng = np.random.default_rng(seed)
    observed = np.mean([_observed_differences(task) for task in tasks], axis=0)
    resampled = np.mean([_resampled_differences(task, samples, rng) for task in tasks], axis=0)
    shared = _shared_variance(resampled)
    largest = _largest_difference([name for task in tasks for name in task.metric.metrics])
    points, (low, high) = observed.mean(), _interval_ends(observed, resampled, shared, largest)
    p = p_over_seeds(observed, shared) if len(observed) > 1 else None
    if _may_be_chance(tasks):
        low, high = min(low, 0.0), max(high, 0.0)
    return Delta(points=_round_value(points), low=_round_value(low), high=_round_value(high), mcnemar_p=None, seeds_p=p)


def recorded_over_seeds(deltas: Sequence[Delta], metrics: Sequence[str]) -> Delta:
    """Return the mean over seeds whose predictions are not available, from each one's difference, of the mean of `metrics`, and its
    interval on the same examples. The variance over examples that they share is unknown: at most that of one of them."""
    observed = np.array([delta.points for delta in deltas])
    of_examples = float(np.mean([((delta.high - delta.low) / 2 / NORMAL_QUANTILE) ** 2 for delta in deltas]))
    points, half = float(observed.mean()), float(half_width(observed, of_examples))
    largest = _largest_difference(metrics)
    low, high = max(points - half, -largest), min(points + half, largest)
    return Delta(points=points, low=low, high=high, mcnemar_p=None, seeds_p=p_over_seeds(observed, of_examples))


def recorded_over_tasks(deltas: Sequence[Delta]) -> Delta:
    """Return the mean over tasks from each one's difference and interval, without their predictions; a single task's delta
    unchanged.

    Tasks share no examples, so the distances to the ends of their intervals add up in squares. What a seed made for several
    tasks is treated as independent too; `mean_over_tasks` compares seeds by their means. For means over seeds, the p of each
    task gives its number of standard errors from zero, in a normal distribution: these errors add up in squares too.
    """
    if len(deltas) == 1:
        return deltas[0]
    count = len(deltas)
    points = sum(delta.points for delta in deltas) / count
    below = math.hypot(*(delta.points - delta.low for delta in deltas)) / count
    above = math.hypot(*(delta.high - delta.points for delta in deltas)) / count
    p = None
    if any(delta.seeds_p is not None for delta in deltas) and (
        error := math.hypot(*map(_standard_error, deltas)) / count
    ):
        p = math.erfc(abs(points) / error / math.sqrt(2))
    return Delta(points=points, low=points - below, high=points + above, mcnemar_p=None, seeds_p=p)


def _standard_error(delta: Delta) -> float:
    """Return the standard error of a normal distribution with the p of `delta` over seeds; for one seed, or if p is
    uninformative, that of the interval."""
    if delta.seeds_p is not None and delta.points and 1e-12 < delta.seeds_p < 1:
        return abs(delta.points) / NormalDist().inv_cdf(1 - delta.seeds_p / 2)
    return max(delta.points - delta.low, delta.high - delta.points) / NORMAL_QUANTILE


def half_width(observed: np.ndarray, shared: np.ndarray | float) -> np.ndarray:
    """Return half the width of the 95% interval of a mean over seeds, points [...].

    `observed`: differences [..., seed]. `shared`: the variance over examples that all seeds share: the mean covariance, over
    resamples of the examples, of two seeds' differences. With the sample variance s² of S `observed`, which contains the
    seeds' own variance and the examples' that they do not share, the mean has the variance shared + s² / S.

    The critical value is between the normal one, z (no variance of the seeds), and Student's t with S - 1 degrees of freedom
    (nothing else): z + (t - z) · 5f² / (1 + 4f²), where f is the seeds' share of the variance. With the weight f it is
    Cochran's (Cochran & Cox 1957), whose coverage for two seeds is up to .978. With this weight coverage is .937 to .968 for
    two seeds and .950 to .968 for more, whatever the two variances are; resampling two or three seeds covers .7.
    """
    from scipy.special import stdtrit

    total, share = _variance(observed, shared)
    student = stdtrit(observed.shape[-1] - 1, (1 + CONFIDENCE) / 2)
    return (NORMAL_QUANTILE + (student - NORMAL_QUANTILE) * 5 * share**2 / (1 + 4 * share**2)) * np.sqrt(total)


def p_over_seeds(observed: np.ndarray, shared: float) -> float:
    """Return the two-sided p of no difference, for a mean over seeds: `observed` [seed] and `shared` as in `half_width`.

    It is the level at which the critical value equals |mean| / √variance. Between the normal value z and Student's t, that
    value is z + (t - z) · √f here: a correction needs values far out, where two seeds' t is so large that the weight of the
    95% interval is too small. With √f at most one family in twenty has a false difference (tests/stats/test_corrected_seeds.py).
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri, stdtrit

    total, share = (float(value) for value in _variance(observed, shared))
    if not total:
        return float(not observed.mean())
    reach, weight, freedom = abs(float(observed.mean())) / math.sqrt(total), math.sqrt(share), len(observed) - 1

    def beyond(exponent: float) -> float:
        """Return how far the critical value at the level e^exponent is beyond the mean."""
        tail = math.exp(exponent) / 2
        return -(ndtri(tail) + (stdtrit(freedom, tail) - ndtri(tail)) * weight) - reach

    least = math.log(1e-12)
    return math.exp(cast(float, brentq(beyond, least, 0.0))) if beyond(least) > 0 else 0.0


def _variance(observed: np.ndarray, shared: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance of a mean over seeds, and the share of it that is the seeds' own."""
    own = observed.var(axis=-1, ddof=1) / observed.shape[-1]
    total = np.maximum(shared, 0) + own
    return total, np.divide(own, total, out=np.zeros_like(total), where=total > 0)


def mcnemar(base_correct: np.ndarray, other_correct: np.ndarray) -> float:
    """Return the exact two-sided p of McNemar's test: are the examples that only one model gets right split evenly?

    The binomial test on the discordant pairs, in integers; 1.0 if there are none.
    """
    base, other = np.asarray(base_correct, dtype=bool), np.asarray(other_correct, dtype=bool)
    check_lengths(base, [other])
    only_base, only_other = int((base & ~other).sum()), int((other & ~base).sum())
    discordant = only_base + only_other
    term = total = 1
    for successes in range(1, min(only_base, only_other) + 1):
        term = term * (discordant - successes + 1) // successes
        total += term
    return min(1.0, 2 * total / 2**discordant)


def mcnemar_p(metric: Headline, base: np.ndarray, other: np.ndarray, gold: np.ndarray) -> float | None:
    """Return `mcnemar` of two models' outputs; None if the score is not a share of right answers."""
    right, other_right = metric.correct(base, gold), metric.correct(other, gold)
    return None if right is None or other_right is None else mcnemar(right, other_right)


def p_value(delta: Delta) -> float:
    """Return the two-sided p of no difference: McNemar's exact one or that over seeds, if recorded; else that of the
    interval, whose end towards 0 is taken as the normal quantile (Altman & Bland 2011, BMJ 343:d2304)."""
    for p in (delta.mcnemar_p, delta.seeds_p):
        if p is not None:
            return p
    reach = abs(delta.points - (delta.low if delta.points > 0 else delta.high))
    return math.erfc(NORMAL_QUANTILE * abs(delta.points) / reach / math.sqrt(2)) if reach else float(not delta.points)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct each p of a family of comparisons for the others. If those below .05 count as differences, at most 5% of
    families without any difference have a false one, however the comparisons depend on each other (Holm 1979, Scand. J.
    Stat. 6:65)."""
    # From the smallest p on, multiply each by the number of those not yet corrected; a result is never below an earlier one.
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def _check_lengths_of(task: Paired) -> Paired:
    gold = np.asarray(task.gold)
    pairs = [(np.asarray(base), np.asarray(other)) for base, other in task.pairs]
    check_lengths(gold, [output for pair in pairs for output in pair])
    return Paired(task.metric, pairs, gold)


def _observed_differences(task: Paired) -> np.ndarray:
    """Return the points [seed]: other minus base."""
    return np.array([task.metric(other, task.gold) - task.metric(base, task.gold) for base, other in task.pairs])


def _shared_variance(resampled: np.ndarray) -> float:
    """Return the variance over examples that all seeds share, from `resampled` [seed, sample]; 0 for one seed."""
    seeds = len(resampled)
    return float(np.cov(resampled)[~np.eye(seeds, dtype=bool)].mean()) if seeds > 1 else 0.0


def _largest_difference(metrics: Sequence[str]) -> float:
    """Return the largest possible difference between two scores that are means of `metrics`, in points."""
    return 200.0 if _SIGNED & set(metrics) else 100.0


def _interval_ends(observed: np.ndarray, resampled: np.ndarray, shared: float, largest: float) -> tuple[float, float]:
    """Return the bootstrap's quantiles of the mean over seeds, moved away from it until the interval accounts for new seeds
    too, and at most `largest`. `observed` [seed], `resampled` [seed, sample]; `shared` as in `half_width`."""
    mean, means = float(observed.mean()), resampled.mean(axis=0)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    stretch, seeds = 1.0, len(observed)
    if seeds > 1 and (spread := float(means.std())):
        stretch = float(half_width(observed, shared)) / (NORMAL_QUANTILE * spread)
    low, high = mean + stretch * (low - mean), mean + stretch * (high - mean)
    return max(min(mean, low), -largest), min(max(mean, high), largest)


def _may_be_chance(tasks: Sequence[Paired]) -> bool:
    """Whether the answers differ on too few examples for any difference to be more than chance."""
    if sum(task.metric.count_changed(task.pairs, task.gold) for task in tasks) < FEWEST:
        return True
    (first, *others), pairs = tasks, tasks[0].pairs
    if others or len(pairs) > 1:
        return False
    p = mcnemar_p(first.metric, *pairs[0], first.gold)
    return p is not None and p >= 1 - CONFIDENCE


def _resampled_differences(task: Paired, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return the points [seed, sample]: other minus base on resampled examples, the same ones for every seed."""
    points = task.metric.resampled(task.pairs, task.gold, samples, rng)
    return points[1::2] - points[::2]


def _round_value(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0  # never -0.0
