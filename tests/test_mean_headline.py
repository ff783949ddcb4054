"""The mean of a score over sets: its definition, and that resamples stay within sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from compress.errors import CompressError
from compress.metrics import CorrelationHeadline, MeanHeadline
from compress.stats.significance import paired_bootstrap

SIZES = (40, 25, 60)
SPEARMAN = CorrelationHeadline(("spearman",))
MEAN = MeanHeadline(SPEARMAN, SIZES)


def models() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (base, other, gold); scores differ so much between sets that the examples of all sets together are ordered well."""
    rng = np.random.default_rng(0)
    gold = np.concatenate([rng.uniform(size=size) + 10 * place for place, size in enumerate(SIZES)])
    base, other = (gold + rng.normal(size=len(gold)) * noise for noise in (0.3, 0.6))
    return base, other, gold


def rho(one: np.ndarray, other: np.ndarray) -> float:
    return 100 * float(np.asarray(spearmanr(one, other))[0])


def parts(array: np.ndarray) -> list[np.ndarray]:
    return np.split(array, np.cumsum(SIZES)[:-1])


def test_each_set_counts_the_same() -> None:
    base, _, gold = models()
    expected = np.mean([rho(*part) for part in zip(parts(base), parts(gold), strict=True)])
    assert MEAN(base, gold) == pytest.approx(expected, abs=1e-9)
    assert MEAN.metrics == ("spearman",) and MEAN.correct(base, gold) is None
    assert rho(base, gold) > expected + 10, "the sets lie apart, which only all together gain by"


def test_resamples_draw_each_set_from_itself() -> None:
    base, other, gold = models()
    drawn = MEAN.resampled([(base, other)], gold, 3000, np.random.default_rng(1))
    assert drawn.shape == (2, 3000)
    rng, of_base = np.random.default_rng(2), []
    for mine, true in zip(parts(base), parts(gold), strict=True):
        draws = rng.integers(len(mine), size=(400, len(mine)))
        of_base.append([rho(mine[rows], true[rows]) for rows in draws])
    expected = np.mean(of_base, axis=0)
    assert drawn[0].mean() == pytest.approx(expected.mean(), abs=0.7)
    assert drawn[0].std() == pytest.approx(expected.std(), rel=0.2)
    points, low, high = paired_bootstrap(MEAN, base, other, gold)
    assert points == pytest.approx(MEAN(other, gold) - MEAN(base, gold), abs=1e-9)
    assert low < points < high < 0


def test_the_same_answers_are_no_difference() -> None:
    base, _, gold = models()
    points, low, high = paired_bootstrap(MEAN, base, base.copy(), gold)
    assert points == 0 and low < 0 < high
    assert not MEAN.differ(base, base.copy()).any() and MEAN.differ(base, -base).all()


def test_examples_of_another_number_are_refused() -> None:
    base, _, gold = models()
    with pytest.raises(CompressError, match=r"each of the 125 examples .* found \[124\]"):
        MEAN(base[:-1], gold[:-1])
