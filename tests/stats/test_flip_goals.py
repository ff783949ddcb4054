"""The rule for a search's flip goal: not vacuous, not stricter than requested, and described in words."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binom, binomtest

from compress.stats.flip_goals import flip_interval, flip_rate, in_words, outcome, texts_to_judge


@pytest.mark.parametrize(
    ("max_flips", "texts"),
    [(0.2, 1000), (1, 1000), (100, 1000), (0.05, 4000), (0.001, 10_000), (1e-310, 10_000), (0, 1000)],
)
def test_a_goal_is_judged_on_a_thousand_texts_or_as_many_as_make_two_flips_of_it(max_flips: float, texts: int) -> None:
    assert texts_to_judge(max_flips) == texts


def most_flips(goal: float, texts: int) -> int:
    return max(flips for flips in range(texts + 1) if flip_rate(flips, texts) <= goal)


@pytest.mark.parametrize("goal", [0.1, 0.2, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("texts", [20, 127, 249, 400, 499, 1000, 2000])
def test_a_mix_at_its_goal_passes_as_often_as_not_however_many_texts_there_are(goal: float, texts: int) -> None:
    """The plain share would fail it in 63% of the cases at .2% and 499 texts; one more flip would be too many."""
    allowed = most_flips(goal, texts)
    assert binom.cdf(allowed, texts, goal / 100) >= 0.5
    assert binom.cdf(allowed - 1, texts, goal / 100) < 0.5


def test_a_mix_beyond_its_goal_seldom_passes_on_a_thousand_texts() -> None:
    """A 95% lower bound would allow 5 flips, and pass .5% in 62% of the cases."""
    assert most_flips(0.2, 1000) == 2
    assert binom.cdf(most_flips(0.2, 1000), 1000, 0.005) < 0.13
    assert binom.cdf(most_flips(0.2, 1000), 1000, 0.01) < 0.003


def test_few_texts_are_no_reason_to_allow_none() -> None:
    assert (most_flips(0.2, 346), most_flips(0.2, 347)) == (0, 1)
    assert (flip_rate(0, 50), flip_rate(50, 50) > 90) == (0, True)
    assert flip_rate(1, 10**6) > 0  # only zero flips meet a goal of zero


@pytest.mark.parametrize(("flips", "texts"), [(0, 1000), (2, 1000), (1, 7), (7, 7), (300, 1043)])
def test_the_interval_is_that_of_clopper_and_pearson(flips: int, texts: int) -> None:
    expected = binomtest(flips, texts).proportion_ci(0.95, method="exact")
    assert flip_interval(flips, texts) == pytest.approx((100 * expected.low, 100 * expected.high), abs=1e-6)


def info(**changes: Any) -> dict[str, Any]:
    reached = {"drop": 0.12, "flips": 0.2, "flipped": 2, "flips_interval": [0.0242, 0.7205]}
    fields = {"goal": {"drop": 0.5, "flips": 0.2}, "reached": reached, "texts": {"tuning": 249, "train": 751}}
    return fields | changes


def test_an_outcome_says_on_how_many_texts_and_how_sure() -> None:
    assert in_words(info()["goal"]) == "0.5 points and 0.2% flips"
    assert outcome(info()) == (
        "0.12 points on 249 texts of the tuning split; 2 flips of 1,000 texts, 0.20% (95% interval 0.02 to 0.72%), counted on "
        "these and 751 more of train, which the model has seen"
    )


def test_an_outcome_says_where_texts_were_missing_and_where_none_of_train_were_asked() -> None:
    few = outcome(info(texts={"tuning": 20, "train": 180}))
    assert few.endswith("which the model has seen (all that there are; 1,000 were wanted)")
    enough = outcome(info(texts={"tuning": 2000}))
    assert enough.endswith("0.72%), counted on these")


def test_an_outcome_of_a_score_or_of_an_earlier_version_says_what_it_has() -> None:
    score = info(goal={"drop": 0.5}, reached={"drop": 0.3}, texts={"tuning": 500})
    assert outcome(score) == "0.3 points on the tuning split"
    earlier = info(reached={"drop": 0.1, "flips": 0.2})
    del earlier["texts"]
    assert outcome(earlier) == "0.1 points and 0.2% flips on the tuning split"


def test_an_outcome_says_why_a_rate_above_the_goal_meets_it() -> None:
    reached = {"drop": 0.1, "flips": 0.2381, "flipped": 1, "flips_interval": [0.006, 1.3195], "flips_judged": 0.1649}
    few = outcome(info(reached=reached, texts={"tuning": 42, "train": 378}))
    assert flip_rate(1, 420) == pytest.approx(reached["flips_judged"], abs=1e-4)
    assert "; 1 flip of 420 texts, 0.24% (0.16% by the estimate that is held against the goal; 95% interval 0.01" in few
    for kept in ({"flips": 0.2}, {"flips": 0.1}):  # met by the plain rate too, and missed by both
        assert "estimate" not in outcome(info(reached={**reached, "flips": 0.19}, goal={"drop": 0.5, **kept}))


def test_points_that_a_search_gains_do_not_look_like_a_loss() -> None:
    """In a report −2.38 points are a loss."""
    reached = {**info()["reached"], "drop": -2.381}
    assert outcome(info(reached=reached)).startswith("2.381 points gained on 249 texts of the tuning split; ")
    assert outcome({"reached": {"drop": -0.3}}) == "0.3 points gained on the tuning split"
