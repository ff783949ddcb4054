"""The choice of widths and units, against every choice there is."""

from __future__ import annotations

from itertools import product

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
    losses = [np.array([4.15, 0.15, 0.05, 0.0]), np.array([0.6, 0.3, 0.1, 0.0])]
    widths = [Widths(np.arange(1, 5), 10.0 * np.arange(1, 5))] * 2
    assert choose_widths(losses, widths, 80.0) == [4, 4]
    assert choose_widths(losses, widths, 30.0) == [2, 1]
    assert choose_widths(losses, widths, 40.0) == [2, 2]
    assert choose_widths(losses, widths, 19.9) == [1, 1]
    slow_first = [Widths(np.arange(1, 5), np.array([10.0, 50.0, 60.0, 70.0])), widths[1]]
    assert choose_widths(losses, slow_first, 50.1) == [1, 4]


def test_neurons_are_kept_in_multiples_of_16_or_all():
    assert neuron_counts(64).tolist() == [16, 32, 48, 64]
    assert neuron_counts(40).tolist() == [16, 32, 40]
    assert neuron_counts(8).tolist() == [8]


def lost(gradients: np.ndarray, gone: set[int]) -> float:
    return float(np.square(gradients[:, sorted(gone)].sum(1)).sum())


def by_exchanges(gradients: np.ndarray, keep: int) -> list[int]:
    """What stays, each exchange chosen by the loss of all that go."""
    order = [int(unit) for unit in np.argsort(np.square(gradients).sum(0))]
    gone = set(order[: len(order) - keep])
    for unit in order[len(order) - keep :]:
        gone.add(unit)
        gone.remove(min(gone, key=lambda other: lost(gradients, gone - {other})))
    return sorted(set(order) - gone)


@pytest.mark.parametrize("seed", range(5))
def test_units_that_go_are_exchanged_while_that_loses_less(seed: int):
    random = np.random.default_rng(seed)
    gradients = random.normal(size=(40, 9))
    for keep in range(1, 9):
        found = rearranged(gradients, keep)
        assert found == by_exchanges(gradients, keep) and len(found) == keep
    assert rearranged(gradients, 9) == list(range(9))


def test_a_unit_that_makes_up_for_one_that_goes_goes_with_it():
    """By themselves 0 and 1 matter least; with 0, however, 2 loses nothing."""
    gradients = np.array([[1.0, 0.0, -1.1, 0.0], [0.0, 1.05, 0.0, 1.2]])
    assert rearranged(gradients, 2) == [1, 3]


def test_independent_units_stay_by_their_importance():
    gradients = np.diag([3.0, 1.0, 5.0, 2.0, 4.0])
    assert rearranged(gradients, 2) == [2, 4]
    assert rearranged(gradients, 4) == [0, 2, 3, 4]
