"""The choice of widths and units, against all possible choices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from compress.pruning.unit_choice import Widths, choose_widths, head_counts, least_loss, neuron_counts, rearrange_units


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
    best = least_loss(losses, costs, budget)
    assert (best is None) == (not every)
    if best is not None:
        assert every[tuple(best)] == pytest.approx(min(every.values()))


def test_widths_keep_what_matters_and_honour_the_budget():
    losses = [np.array([9.0, 4.15, 0.15, 0.05, 0.0]), np.array([9.0, 0.6, 0.3, 0.1, 0.0])]
    widths = [Widths(np.arange(5), 10.0 * np.arange(5))] * 2

    def chosen(budget: float, widths: list[Widths] = widths) -> list[int]:
        return choose_widths(losses, widths, budget, one_of=[0])

    assert chosen(80.0) == [4, 4]
    assert chosen(30.0) == [2, 1]
    assert chosen(40.0) == [2, 2]
    assert chosen(19.9) == [1, 0]
    assert chosen(9.9) == [1, 0]  # the narrowest possible
    slow_first = [Widths(np.arange(5), np.array([0.0, 10.0, 50.0, 60.0, 70.0])), widths[1]]
    assert chosen(50.1, slow_first) == [1, 4]


def every_choice(sizes: list[int], allowed: Callable[[tuple[int, ...]], bool]) -> list[tuple[int, ...]]:
    return [choice for choice in product(*map(range, sizes)) if allowed(choice)]


@pytest.mark.parametrize("seed", range(30))
def test_of_all_choices_with_empty_parts_the_best_is_found_that_has_a_head(seed: int):
    """The parts are heads, neurons, heads, neurons; heads matter so little that without the rule the best choice often has
    none."""
    random, sizes = np.random.default_rng(seed), [3, 4, 3, 3]
    losses = [
        np.sort(random.random(options))[::-1] * (0.02 if place % 2 == 0 else 1) for place, options in enumerate(sizes)
    ]
    costs = [np.concatenate([[0], np.cumsum(random.integers(1, 9, options - 1))]) for options in sizes]
    budget = int(random.integers(min(costs[0][1], costs[2][1]), 40)) + 0.5  # costs are rounded up by far less

    def cost(choice: tuple[int, ...]) -> int:
        return sum(int(each[option]) for each, option in zip(costs, choice, strict=True))

    def loss(choice: tuple[int, ...]) -> float:
        return sum(float(each[option]) for each, option in zip(losses, choice, strict=True))

    every = every_choice(sizes, lambda choice: cost(choice) <= budget and bool(choice[0] or choice[2]))
    widths = [Widths(np.arange(len(each)), each.astype(float)) for each in costs]
    best = tuple(choose_widths(losses, widths, budget, one_of=[0, 2]))
    assert best in every
    assert loss(best) == pytest.approx(min(map(loss, every)))


def test_a_part_that_loses_nothing_goes_even_where_there_is_room():
    losses = [np.array([1.0, 0.0]), np.array([0.0, 0.0, 0.0])]
    widths = [Widths(np.arange(2), np.array([0.0, 5.0])), Widths(np.array([0, 16, 32]), np.array([0.0, 1.0, 2.0]))]
    assert choose_widths(losses, widths, 7.0, one_of=[0]) == [1, 0]


def test_neurons_are_kept_in_multiples_of_16_or_all_or_none():
    assert neuron_counts(64).tolist() == [0, 16, 32, 48, 64]
    assert neuron_counts(40).tolist() == [0, 16, 32, 40]
    assert neuron_counts(8).tolist() == [0, 8]
    assert neuron_counts(0).tolist() == [0]
    assert head_counts(3).tolist() == [0, 1, 2, 3] and head_counts(0).tolist() == [0]


def lost(gradients: np.ndarray, gone: set[int]) -> float:
    return float(np.square(gradients[:, sorted(gone)].sum(1)).sum())


def by_exchanges(gradients: np.ndarray, keep: int) -> list[int]:
    """Return the units that stay, each exchange chosen by the loss of all removed units."""
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
    for keep in range(9):
        units = rearrange_units(gradients, keep)
        assert units == by_exchanges(gradients, keep) and len(units) == keep
    assert rearrange_units(gradients, 9) == list(range(9))


def test_a_unit_that_makes_up_for_one_that_goes_goes_with_it():
    """Alone, 0 and 1 matter least; but once 0 is removed, removing 2 loses nothing."""
    gradients = np.array([[1.0, 0.0, -1.1, 0.0], [0.0, 1.05, 0.0, 1.2]])
    assert rearrange_units(gradients, 2) == [1, 3]


def test_independent_units_stay_by_their_importance():
    gradients = np.diag([3.0, 1.0, 5.0, 2.0, 4.0])
    assert rearrange_units(gradients, 2) == [2, 4]
    assert rearrange_units(gradients, 4) == [0, 2, 3, 4]


def test_costs_between_the_units_of_the_budget_are_rounded_up() -> None:
    widths = [Widths(np.arange(2), np.array([0.0, 1.00004])), Widths(np.array([0, 16]), np.array([0.0, 1.0]))]
    assert choose_widths([np.array([1.0, 0.0])] * 2, widths, 2.0, one_of=[0]) == [1, 0]


def test_parts_without_a_measurable_cost_keep_all_their_units() -> None:
    """As where the times of a tiny model vary by more than its heads take."""
    widths = [Widths(np.arange(3), np.zeros(3)), Widths(np.array([0, 16]), np.zeros(2))]
    assert choose_widths([np.array([2.0, 1.0, 0.0]), np.array([1.0, 0.0])], widths, 0.0, one_of=[0]) == [2, 16]
