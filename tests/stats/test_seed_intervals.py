"""Intervals over several seeds against the sample variance, computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from metric_references import worse

from compress.metrics import ClassHeadline
from compress.stats.significance import mcnemar, paired_bootstrap, paired_bootstrap_seeds

ACCURACY = ClassHeadline(("accuracy",))


def half_by_hand(gaps: Sequence[np.ndarray]) -> float:
    """Return half the interval's width in points, from each seed's per-example differences; t from a table."""
    student = {2: 12.706, 3: 4.303, 5: 2.776}[len(gaps)]
    means = [float(np.mean(gap)) for gap in gaps]
    centre = sum(means) / len(means)
    of_seeds = sum((mean - centre) ** 2 for mean in means) / (len(means) - 1) / len(means)
    covariances = [float(np.mean((a - a.mean()) * (b - b.mean()))) / len(a) for a in gaps for b in gaps if a is not b]
    of_examples = sum(covariances) / len(covariances)
    share = of_seeds / (of_seeds + of_examples)
    critical = 1.95996 + (student - 1.95996) * 5 * share**2 / (1 + 4 * share**2)
    return 100 * critical * (of_seeds + of_examples) ** 0.5


@pytest.mark.parametrize("counts", [(40, 70), (40, 45), (30, 60, 90), (50, 52, 54), (30, 40, 50, 60, 70)])
def test_the_variance_of_seeds_is_that_of_a_sample(counts: tuple[int, ...]) -> None:
    """Divided by S - 1, then by S: dividing only by S, or drawing S of S seeds, makes the interval too narrow."""
    examples = 4000
    gold, base = np.tile([0, 1], examples // 2), worse(examples, 0)
    outputs = [worse(examples, count) for count in counts]
    gaps = [(output.argmax(1) == gold).astype(float) - 1 for output in outputs]
    points, low, high = paired_bootstrap_seeds(ACCURACY, [(base, output) for output in outputs], gold, samples=8000)
    assert points == pytest.approx(-100 * np.mean(counts) / examples)
    assert (high - low) / 2 == pytest.approx(half_by_hand(gaps), rel=0.04)


def test_seeds_that_agree_are_about_as_wide_as_one() -> None:
    """Equal pairs add no examples. The two added imaginary ones count a third each beside the 20 that differ."""
    gold, base, other = np.tile([0, 1], 200), worse(400, 0), worse(400, 20)
    alone = paired_bootstrap(ACCURACY, base, other, gold)
    agree = paired_bootstrap_seeds(ACCURACY, [(base, other)] * 3, gold)
    assert agree[0] == alone[0]
    assert agree[2] - agree[1] == pytest.approx((alone[2] - alone[1]) * (20.67 / 22) ** 0.5, rel=0.06)


def test_several_seeds_are_not_judged_by_the_first_ones_exact_test() -> None:
    gold, base = np.tile([0, 1], 500), worse(1000, 0)
    pairs = [(base, worse(1000, count)) for count in (5, 9, 9)]
    assert mcnemar(base.argmax(1) == gold, pairs[0][1].argmax(1) == gold) > 0.05
    points, low, high = paired_bootstrap_seeds(ACCURACY, pairs, gold)
    assert low < points < high < 0


def test_the_two_examples_that_are_added_are_shared_by_the_seeds() -> None:
    gold, base = np.tile([0, 1], 200), worse(400, 40)
    one, four = (paired_bootstrap_seeds(ACCURACY, [(base, base)] * seeds, gold, samples=8000) for seeds in (1, 4))
    assert four[2] - four[1] < 0.75 * (one[2] - one[1])
