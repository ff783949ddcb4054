"""Corrected comparisons of means over seeds: how often a family without any difference has a false alarm."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from default_suite import slow

from compress.report.grouping.multiple_comparisons import correct_family
from compress.results.fidelity import Delta
from compress.stats.significance import half_width, p_over_seeds, recorded_over_seeds, recorded_over_tasks


def false_alarms(
    seeds: int, examples_sd: float, size: int, families: int, *, tasks: int = 1, by_seeds: bool = True
) -> float:
    """Return the share of families with a false alarm; the seeds' standard deviation is 1. `by_seeds`: use the p that accounts for it;
    otherwise only the interval, as if its ends were at the normal quantile."""
    rng, alarms, shared = np.random.default_rng(11), 0, examples_sd**2
    for _ in range(families):
        observed = rng.normal(0, examples_sd, (size, tasks, 1)) + rng.normal(0, 1, (size, tasks, seeds))
        widths = half_width(observed, shared)
        deltas = [
            recorded_over_tasks([
                Delta(points=row.mean(), low=row.mean() - half, high=row.mean() + half, mcnemar_p=None,
                      seeds_p=p_over_seeds(row, shared) if by_seeds else None)
                for row, half in zip(model, halves, strict=True)
            ])
            for model, halves in zip(observed, widths, strict=True)
        ]  # fmt: skip
        marks = correct_family(deltas)
        alarms += any(delta.distinguishable and mark.distinguishable for delta, mark in zip(deltas, marks, strict=True))
    return alarms / families


@pytest.mark.parametrize(
    ("seeds", "examples_sd", "size", "tasks"),
    [
        (2, 0.0, 6, 1), (2, 0.3, 6, 1), (3, 0.0, 6, 1),
        *slow((2, 0.2, 12, 1), (2, 1.0, 6, 1), (3, 0.2, 12, 1), (3, 1.0, 6, 1), (5, 0.3, 6, 1)),
        *slow((2, 0.0, 12, 2), (2, 0.3, 12, 2), (3, 0.0, 6, 4)),
    ],
)  # fmt: skip
def test_one_family_in_twenty_at_most_has_a_false_difference(
    seeds: int, examples_sd: float, size: int, tasks: int
) -> None:
    families = 600
    share = false_alarms(seeds, examples_sd, size, families, tasks=tasks)
    assert share <= 0.05 + 2.5 * (0.05 * 0.95 / families) ** 0.5


@pytest.mark.parametrize(("size", "least"), [(6, 0.15), *slow((10, 0.23))])
def test_by_the_normal_distribution_far_more_families_have_one(size: int, least: float) -> None:
    """About one in five and three in ten."""
    assert false_alarms(2, 0.0, size, 600, by_seeds=False) > least


def test_p_of_the_limits() -> None:
    """If all variance is between seeds: Student's t. If none is: the normal distribution."""
    from scipy import stats

    observed = np.array([1.0, 2.0, 4.0])
    reach = observed.mean() / (observed.std(ddof=1) / 3**0.5)
    assert p_over_seeds(observed, 0.0) == pytest.approx(2 * stats.t.sf(reach, 2), rel=1e-6)
    assert p_over_seeds(np.full(3, 2.0), 1.0) == pytest.approx(2 * stats.norm.sf(2), rel=1e-6)
    assert p_over_seeds(-observed, 0.5) == pytest.approx(p_over_seeds(observed, 0.5))
    assert p_over_seeds(np.zeros(3), 0.0) == 1
    assert p_over_seeds(np.full(3, 90.0), 1e-3) == 0


def test_without_predictions_p_goes_by_the_spread_of_the_seeds_too() -> None:
    delta = recorded_over_seeds(
        [Delta(points=p, low=p - 1, high=p + 1, mcnemar_p=None) for p in (-1.0, -5.0)], ["accuracy"]
    )
    assert delta.seeds_p is not None and delta.seeds_p > 0.05
    assert not delta.distinguishable


def test_a_comparison_without_others_goes_by_its_interval_alone() -> None:
    delta = Delta(points=-2.0, low=-3.9, high=-0.1, mcnemar_p=None, seeds_p=0.06)
    (alone,), several = correct_family([delta]), correct_family([delta, delta])
    assert alone.distinguishable and not any(mark.distinguishable for mark in several)


def test_over_tasks_the_p_of_each_goes_on() -> None:
    """Two seeds are little evidence, whatever the interval of their mean over tasks: its ends are from Student's t, not the normal
    quantile."""
    observed = np.array([1.0, 2.0])
    wide = float(half_width(observed, 0.0))
    delta = Delta(points=1.5, low=1.5 - wide, high=1.5 + wide, mcnemar_p=None, seeds_p=p_over_seeds(observed, 0.0))
    assert recorded_over_tasks([delta]) is delta
    both = recorded_over_tasks([delta, delta])
    z = NormalDist().inv_cdf(1 - (delta.seeds_p or 0) / 2)
    assert both.seeds_p == pytest.approx(2 * (1 - NormalDist().cdf(z * 2**0.5)), rel=1e-6)
    one_seed = Delta(points=1.0, low=0.5, high=1.5, mcnemar_p=0.01)
    assert recorded_over_tasks([one_seed, one_seed]).seeds_p is None
