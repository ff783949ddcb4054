"""The choice of widths and units, against every choice there is."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from compress.pruning.search import Widths, choose_widths, least_loss, neuron_counts, rearranged


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_loses_the_least_of_all_under_the_budget(seed: int):
    random = np.random.default_rng(seed)
    losses = [random.random(options) for options in (3, 4, 2, 3)]
    costs = [np.sort(random.integers(1, 12, options)) for options in (3, 4, 2, 3)]
    budget = int(random.integers(8, 40))
    every = {
        choice: sum(loss[option] for loss, option in zip(losses, choice, strict=True))
        for choice in product(*map(range, (3, 4, 2, 3)))
        if sum(int(cost[option]) for cost, option in zip(costs, choice, strict=True)) <= budget
    }
    found = least_loss(losses, costs, budget)
    assert (found is None) == (not every)
    if found is not None:
        assert every[tuple(found)] == pytest.approx(min(every.values()))


def test_widths_keep_what_matters_and_honour_the_budget():
    importances = [np.array([5.0, 0.05, 4.0, 0.1]), np.array([0.2, 3.0, 0.1, 0.3])]
    widths = [Widths(np.arange(1, 5), 10.0 * np.arange(1, 5))] * 2
    assert choose_widths(importances, widths, 80.0) == [4, 4]
    assert choose_widths(importances, widths, 30.0) == [2, 1]
    assert choose_widths(importances, widths, 40.0) == [2, 2]
    assert choose_widths(importances, widths, 19.9) == [1, 1]
    slow_first = [Widths(np.arange(1, 5), np.array([10.0, 50.0, 60.0, 70.0])), widths[1]]
    assert choose_widths(importances, slow_first, 50.1) == [1, 4]


def test_neurons_are_kept_in_multiples_of_16_or_all():
    assert neuron_counts(64).tolist() == [16, 32, 48, 64]
    assert neuron_counts(40).tolist() == [16, 32, 40]
    assert neuron_counts(8).tolist() == [8]


@pytest.mark.parametrize("seed", range(5))
def test_units_that_go_together_are_told_from_units_that_go_alone(seed: int):
    """Never a worse choice than by importance alone, and the best where two units undo each other."""
    random = np.random.default_rng(seed)
    gradients = random.normal(size=(40, 7)).astype(np.float32)
    gradients[:, 5] = -gradients[:, 2] + 0.01 * random.normal(size=40)  # one alone matters, both together do not
    gradients[:, [2, 5]] *= 1.2

    def lost(kept: list[int]) -> float:
        return float(np.square(gradients[:, [u for u in range(7) if u not in kept]].sum(1)).sum())

    alone = sorted(np.argsort(-np.square(gradients).sum(0))[:4].tolist())
    found = rearranged(gradients, 4)
    assert found == sorted(set(found)) and len(found) == 4
    assert lost(found) <= lost(alone) + 1e-3
    assert rearranged(gradients, 7) == list(range(7))
    assert min(map(lost, map(list, combinations(range(7), 4)))) <= lost(found)


def test_independent_units_stay_by_their_importance():
    gradients = np.diag([3.0, 1.0, 5.0, 2.0, 4.0])
    assert rearranged(gradients, 2) == [2, 4]
    assert rearranged(gradients, 4) == [0, 2, 3, 4]
