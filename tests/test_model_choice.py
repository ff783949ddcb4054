"""Model choice under limits, compared with brute force on random tables."""

from __future__ import annotations

import itertools
import random

import pytest

from compress.errors import CompressError
from compress.model_choice import Limits, Measured, choose, pareto_front


def _table(seed: int) -> list[Measured]:
    """Return a random table with few distinct values, so that ties occur."""
    dice = random.Random(seed)
    return [
        Measured(number, dice.randint(80, 90), dice.choice([5.0, 10.0, 20.0, 40.0]), dice.choice([1.0, 2.0, 4.0]))
        for number in range(dice.randint(1, 12))
    ]


def _limits(seed: int) -> Limits:
    dice = random.Random(1000 + seed)
    latency, size = dice.choice([None, 1.0, 3.0]), dice.choice([None, 5.0, 15.0])
    return Limits(latency, size, dice.choice([70.0, 85.0, 95.0, *([None] if latency or size else [])]))


@pytest.mark.parametrize("seed", range(200))
def test_the_front_is_what_no_other_beats(seed: int) -> None:
    models = _table(seed)
    expected = set()
    for model in models:
        better = [
            other
            for other in models
            if other.score >= model.score
            and other.size_mb <= model.size_mb
            and (other.latency_ms or 0) <= (model.latency_ms or 0)
        ]
        same = [
            o for o in better if (o.score, o.size_mb, o.latency_ms) == (model.score, model.size_mb, model.latency_ms)
        ]
        if len(better) == len(same):
            expected.add(model.number)
    assert {model.number for model in pareto_front(models)} == expected


@pytest.mark.parametrize("seed", range(200))
def test_the_choice_is_that_of_brute_force(seed: int) -> None:
    models, limits = _table(seed), _limits(seed)
    chosen = choose(models, limits)
    fitting = [
        model
        for model in models
        if (limits.max_latency_ms is None or (model.latency_ms or 0) <= limits.max_latency_ms)
        and (limits.max_size_mb is None or model.size_mb <= limits.max_size_mb)
        and (limits.min_score is None or model.score >= limits.min_score)
    ]
    if fitting:
        assert not chosen.missed
        assert chosen.model in fitting
        if limits.min_score is None:
            assert chosen.model.score == max(model.score for model in fitting)
        else:
            least = min(model.latency_ms or 0 for model in fitting)
            quick = [model for model in fitting if (model.latency_ms or 0) <= 1.05 * least]
            assert chosen.model in quick
            assert chosen.model.size_mb == min(model.size_mb for model in quick)
        assert chosen.model in pareto_front(fitting)
    else:
        assert chosen.missed
        far = {m.number: sum(max(0.0, share) for share in limits.violations(m).values()) for m in models}
        assert far[chosen.model.number] == min(far.values())


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_trials_changes_neither_front_nor_choice(seed: int) -> None:
    models, limits = _table(seed)[:5], _limits(seed)
    for order in itertools.permutations(models):
        assert pareto_front(order) == pareto_front(models)
        assert choose(order, limits) == choose(models, limits)


def test_what_stands_in_the_way_is_named_with_its_numbers() -> None:
    chosen = choose([Measured(0, 80.0, 30.0, 2.0)], Limits(max_latency_ms=3, max_size_mb=20, min_score=88))
    assert [line.split(":")[0] for line in chosen.missed] == ["--max-size-mb", "--min-score"]
    assert "at most 20 MB" in chosen.missed[0] and "30" in chosen.missed[0]


def test_the_cheapest_of_those_with_the_score_is_chosen() -> None:
    large, small, poor = Measured(0, 92.0, 90.0), Measured(1, 91.9, 6.0), Measured(2, 85.0, 1.0)
    assert choose([large, small, poor], Limits(min_score=90)).model == small
    assert choose([large, small, poor], Limits(max_size_mb=100)).model == large


def test_of_times_that_no_measurement_tells_apart_the_smaller_file_is_chosen() -> None:
    fp32, int8, slow = Measured(0, 92.0, 2.0, 0.270), Measured(1, 92.0, 0.5, 0.274), Measured(2, 92.0, 0.1, 0.290)
    assert choose([fp32, int8, slow], Limits(min_score=90)).model == int8


def test_of_equally_quick_models_whose_files_are_as_large_the_better_one_is_chosen() -> None:
    quick, better, larger = Measured(0, 67.0, 17.58, 2.60), Measured(1, 67.5, 17.60, 2.65), Measured(2, 69.0, 18.0, 2.6)
    assert choose([quick, better, larger], Limits(min_score=60)).model == better


def test_a_score_that_is_the_limit_meets_it() -> None:
    assert choose([Measured(0, 0.57 * 100, 1.0)], Limits(min_score=57)).missed == ()


def test_a_close_miss_shows_two_numbers() -> None:
    (line,) = choose([Measured(0, 89.996, 1.0)], Limits(min_score=90)).missed
    assert "90 points" in line and "89.996" in line


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least one limit"),
        ({"max_latency_ms": 0.0}, "--max-latency-ms"),
        ({"max_size_mb": -1.0}, "--max-size-mb"),
        ({"min_score": 101.0}, "--min-score"),
        ({"min_score": 0.8}, "for 80% give 80"),
        ({"min_score": 0.855}, "for 85.5% give 85.5"),
        ({"min_score": 0.005}, "0.005 is read as points of 100; expected more than 1, such as 88 for 88%$"),
        ({"min_score": 0.01}, "expected more than 1, such as"),
        ({"max_size_mb": float("nan")}, "--max-size-mb"),
    ],
)
def test_limits_that_nothing_can_meet_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(CompressError, match=message):
        Limits(**values)
