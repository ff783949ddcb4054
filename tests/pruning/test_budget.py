"""Costs of widths from a planted table, and choices that stay within their budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from compress.models.dimensions import Dimensions
from compress.models.pruned.shape import PrunedShape
from compress.pruning.budget import MeasuredCosts, best_units, choose, flops_costs, narrowest
from compress.pruning.scores import FisherScores

SIZES = Dimensions(
    architecture="bert",
    layers=3,
    hidden=32,
    heads=4,
    intermediate=64,
    vocabulary=100,
    positions=16,
    token_types=2,
    classes=2,
    embedding=32,
    blocks=3,
)
# A head costs 1, 16 neurons 2; in the last layer almost nothing. As with kernels, costs have steps: 48 neurons cost as much as
# 64.
# The first head and the first 16 neurons cost more than later ones.
TABLE = MeasuredCosts(
    empty=4.0,
    heads=((0, 0.0), (1, 2.0), (4, 5.0)),
    neurons=((0, 0.0), (16, 0.5), (32, 2.5), (48, 6.5), (64, 6.5)),
    last_heads=((0, 0.0), (1, 0.6), (4, 0.9)),
    last_neurons=((0, 0.0), (16, 0.4), (64, 1.0)),
)


def scores(seed: int) -> list[FisherScores]:
    random = np.random.default_rng(seed)
    gradients = (random.normal(size=(20, units)).astype(np.float32) for _ in range(3) for units in (4, 64))
    return [FisherScores(torch.from_numpy(each)) for each in gradients]


def shape(heads: list[int], neurons: list[int]) -> PrunedShape:
    return PrunedShape(tuple(tuple(range(each)) for each in heads), tuple(neurons))


@pytest.mark.parametrize(
    ("heads", "neurons", "cost"),
    [
        ([1, 1, 1], [16, 16, 16], 10.0),
        ([0, 1, 1], [16, 16, 16], 8.0),
        ([0, 0, 1], [0, 0, 0], 4.6),
        ([2, 0, 0], [0, 48, 16], 4.0 + 3 + 6.5 + 0.4),
        ([4, 1, 1], [16, 16, 16], 13.0),
        ([2, 3, 1], [16, 32, 16], 10.0 + 1 + 2 + 2),
        ([1, 1, 4], [16, 16, 64], 10.9),
        ([4, 4, 4], [64, 64, 64], 10 + 2 * 9 + 0.9),
    ],
)
def test_a_shape_costs_what_the_table_says(heads: list[int], neurons: list[int], cost: float) -> None:
    assert TABLE.costs(SIZES).of(shape(heads, neurons)) == pytest.approx(cost)


def test_whole_and_narrowest_are_the_ends() -> None:
    costs = TABLE.costs(SIZES)
    assert (costs.least, costs.whole) == (pytest.approx(4.6), pytest.approx(28.9))
    least = narrowest(SIZES).pruned
    for each in (costs, flops_costs(SIZES, 9)):
        assert least is not None and each.of(least) == each.least


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.4, 0.5, 0.75])
def test_a_choice_costs_no_more_than_it_may(seed: int, share: float) -> None:
    costs = TABLE.costs(SIZES)
    kept = choose(scores(seed), costs, share * costs.whole)
    heads, neurons = ([len(each) for each in part] for part in (kept.heads, kept.neurons))
    cost = costs.of(shape(heads, neurons))
    assert cost <= share * costs.whole
    assert cost > share * costs.whole - 4.5  # no step of the table is larger
    assert 48 not in neurons[:2]  # 64 neurons take no longer
    if share > 0.5:
        assert (heads[2], neurons[2]) == (4, 64)  # reducing the last layer gains little


@pytest.mark.parametrize("share", [0.16, 0.2, 0.3])
def test_below_a_head_in_every_layer_whole_parts_go(share: float) -> None:
    costs = TABLE.costs(SIZES)
    kept = choose(scores(0), costs, share * costs.whole)
    heads, neurons = ([len(each) for each in part] for part in (kept.heads, kept.neurons))
    assert costs.of(shape(heads, neurons)) <= share * costs.whole < 10.0
    assert 0 in heads + neurons and any(heads)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_a_layer_of_which_nothing_is_left_stays_so(share: float) -> None:
    pruned = replace(SIZES, pruned=shape([0, 3, 1], [64, 0, 16]))
    unit_scores = scores(0)
    for place, units in enumerate((0, 64, 3, 0, 1, 16)):
        unit_scores[place] = FisherScores(unit_scores[place].gradients[:, :units])
    for costs in (TABLE.costs(pruned), flops_costs(pruned, 9)):
        kept = choose(unit_scores, costs, max(costs.least, share * costs.whole))
        assert kept.heads[0] == kept.neurons[1] == [] and any(kept.heads)
        assert costs.of(shape([len(each) for each in kept.heads], [len(each) for each in kept.neurons])) <= costs.whole


def test_times_that_fall_with_the_width_are_noise() -> None:
    falling = (0, 0.0), (1, -0.1), (2, -0.2), (4, 3.0)
    noisy = MeasuredCosts(10.0, falling, ((0, 0.0), (16, 2.0), (64, 1.0)), falling, ((0, 0.0), (16, -1.0), (64, 0.6)))
    for each in noisy.costs(SIZES).widths:
        assert (np.diff(each.costs) >= 0).all() and each.costs[0] == 0


def test_a_pruned_model_is_charged_for_what_it_has() -> None:
    pruned = replace(SIZES, pruned=shape([2, 4, 1], [32, 64, 16]))
    for costs in (TABLE.costs(pruned), flops_costs(pruned, 9)):
        assert [each.counts[-1] for each in costs.widths] == [2, 32, 4, 64, 1, 16]
        assert costs.of(shape([2, 4, 1], [32, 64, 16])) == pytest.approx(costs.whole)


def test_the_narrowest_of_a_pruned_model_has_a_head_that_the_model_has() -> None:
    before = replace(SIZES, pruned=PrunedShape(((1,), (0, 1), ()), (16, 0, 16)))
    least = narrowest(before).pruned
    assert least is not None and least.neurons == (0, 0, 0)
    assert list(map(len, least.heads)) == [0, 1, 0]
    costs = flops_costs(before, 9)
    assert costs.of(least) == costs.least


def test_no_shape_is_found_below_the_narrowest() -> None:
    with pytest.raises(ValueError, match=r"no shape costs 4\.5; the narrowest costs 4\.6"):
        choose(scores(0), TABLE.costs(SIZES), 4.5)


@pytest.mark.parametrize("seed", range(3))
def test_of_given_widths_the_units_stay_that_lose_the_least(seed: int) -> None:
    """No two units share a gradient, so the choice must be the best of all sets of that size."""
    random = np.random.default_rng(seed)
    losses = [random.permutation(8) + 1.0 for _ in range(4)]
    counts = [3, 5, 8, 0]
    kept = best_units([FisherScores(torch.diag(torch.from_numpy(each))) for each in losses], counts)
    parts = [kept.heads[0], kept.neurons[0], kept.heads[1], kept.neurons[1]]
    for units, loss, count in zip(parts, losses, counts, strict=True):
        best = max(combinations(range(8), count), key=lambda places: float((loss[list(places)] ** 2).sum()))
        assert units == list(best)
