"""Families of comparisons: p of an interval and Holm's correction by hand, and the rate of families with a false alarm."""

from __future__ import annotations

import numpy as np
import pytest
from metric_references import headline_of, two_models
from scipy import stats

from compress.results.fidelity import Delta
from compress.stats.significance import delta, holm, p_value


def test_holm_by_hand() -> None:
    """Multiplied by 4, 3, 2 and 1 in ascending order, never below the corrected value of a smaller one, and at most 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@pytest.mark.parametrize("seed", range(20))
def test_below_05_are_those_that_holms_steps_reject(seed: int) -> None:
    p_values = np.random.default_rng(seed).random(6) * np.random.default_rng(seed + 99).choice([0.01, 0.1, 1], 6)
    rejected = set()
    for step, place in enumerate(np.argsort(p_values)):
        if p_values[place] > 0.05 / (6 - step):
            break
        rejected.add(int(place))
    assert {place for place, p in enumerate(holm(list(p_values))) if p < 0.05} == rejected


def test_p_of_an_interval_is_that_of_the_normal_distribution() -> None:
    """The standard error towards 0 is 1 point, whatever the other end is."""
    for points in (0.5, 1.96, 2.5, 4.0):
        worse = Delta(points=-points, low=-points - 3, high=-points + 1.959964, mcnemar_p=None)
        better = Delta(points=points, low=points - 1.959964, high=points + 9, mcnemar_p=None)
        assert p_value(worse) == pytest.approx(2 * stats.norm.sf(points), rel=1e-4)
        assert p_value(better) == pytest.approx(p_value(worse))


def test_p_of_no_difference_is_1_and_mcnemars_goes_before() -> None:
    assert p_value(Delta(points=0, low=0, high=0, mcnemar_p=None)) == 1
    assert p_value(Delta(points=0, low=-1, high=2, mcnemar_p=None)) == 1
    assert p_value(Delta(points=-3, low=-4, high=-2, mcnemar_p=0.03)) == 0.03


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews", "spearman"])
@pytest.mark.parametrize("seed", range(8))
def test_alone_a_difference_is_below_05_where_its_interval_leaves_out_0(name: str, seed: int) -> None:
    base, other, gold = two_models(name, 90, seed)
    difference = delta(headline_of(name), base, other, gold)
    if difference.distinguishable:
        assert p_value(difference) < 0.05
    elif name != "accuracy":  # its exact test finds some differences that the interval does not
        assert p_value(difference) > 0.05 - 1e-9
