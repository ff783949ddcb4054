"""Choose which units of each layer stay under a budget: first the widths that lose the least importance, then the units
(Kwon et al. 2022, arXiv:2204.09656, §4.2 and §4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MULTIPLE = 16  # of neurons: int8 kernels compute tiles of this many columns
_UNITS_OF_BUDGET = 20_000  # precision: the cost of the whole model in integers


@dataclass(frozen=True)
class Widths:
    """How many units a part of a layer may keep, ascending: `counts` [option], and their costs: `costs` [option]."""

    counts: np.ndarray
    costs: np.ndarray


def head_counts(heads: int) -> np.ndarray:
    """Return the counts from none to all."""
    return np.arange(heads + 1)


def neuron_counts(neurons: int) -> np.ndarray:
    """Return none, multiples of 16, and all of them."""
    return np.unique([*range(0, neurons, MULTIPLE), neurons])


def choose_widths(
    losses: Sequence[np.ndarray], widths: Sequence[Widths], budget: float, *, one_of: Sequence[int]
) -> list[int]:
    """Return how many units to keep in each part, so that the sum of losses is least and the costs sum to at most `budget`,
    or the narrowest widths if these cost more.

    Any part may keep none, but one of the parts `one_of`, given by index, keeps a unit. `losses`: for each part [option], as
    its widths, none first. The minimum is exact at the precision of costs, which are rounded up to 1/20,000 of the whole's.
    """
    unit = sum(float(each.costs[-1]) for each in widths) / _UNITS_OF_BUDGET
    if not unit:  # no part took measurable time: none needs to lose anything
        return [int(each.counts[-1]) for each in widths]
    costs = [np.ceil(each.costs / unit - 1e-6).astype(int) for each in widths]
    most = int(budget / unit + 1e-6)
    options = least_loss(losses, costs, most)
    if options is not None and not any(options[place] for place in one_of):
        options = _least_with_one_of(losses, costs, most, one_of)
    if options is None:
        cheapest = cheapest_unit(widths, one_of)
        options = [int(place == cheapest) for place in range(len(widths))]
    return [int(each.counts[option]) for each, option in zip(widths, options, strict=True)]


def cheapest_unit(widths: Sequence[Widths], one_of: Sequence[int]) -> int:
    """Return the index, among `one_of`, of the part whose narrowest width above none costs the least more than none."""
    having = [place for place in one_of if len(widths[place].counts) > 1]
    return min(having, key=lambda place: float(widths[place].costs[1] - widths[place].costs[0]))


def _least_with_one_of(
    losses: Sequence[np.ndarray], costs: Sequence[np.ndarray], budget: int, one_of: Sequence[int]
) -> list[int] | None:
    """`least_loss` among the choices in which a part of `one_of` takes another option than its first."""
    choices: list[tuple[float, list[int]]] = []
    for place in one_of:
        never = np.where(np.arange(len(losses[place])) == 0, np.inf, losses[place])
        options = least_loss([*losses[:place], never, *losses[place + 1 :]], costs, budget)
        if options is not None:
            choices.append((sum(float(loss[each]) for loss, each in zip(losses, options, strict=True)), options))
    return min(choices)[1] if choices else None


def least_loss(losses: Sequence[np.ndarray], costs: Sequence[np.ndarray], budget: int) -> list[int] | None:
    """Return the option of each group with the least sum of losses, if their integer costs sum to at most `budget`; None if
    there is no such choice. An exact dynamic program over the budget."""
    # best[b]: the least loss of the groups so far at a cost of at most b; choices: for each group and b, its option there.
    best, choices = np.zeros(budget + 1), []
    for group, prices in zip(losses, costs, strict=True):
        next_best, chosen = np.full(budget + 1, np.inf), np.zeros(budget + 1, np.int32)
        for option, (loss, price) in enumerate(zip(group, prices, strict=True)):
            if price > budget:
                continue
            tried = best[: budget + 1 - price] + loss
            better = tried < next_best[price:]
            next_best[price:][better], chosen[price:][better] = tried[better], option
        best, choices = next_best, [*choices, chosen]
    if not np.isfinite(best[budget]):
        return None
    # Trace the choices back from the whole budget.
    options, left = [], budget
    for chosen, prices in zip(reversed(choices), reversed(list(costs)), strict=True):
        options.append(int(chosen[left]))
        left -= int(prices[options[-1]])
    return options[::-1]


def rearrange_units(gradients: np.ndarray, keep: int) -> list[int]:
    """Return the indices, ascending, of the `keep` units that stay, by gradients [example, unit] of their masks.

    Start with the units that are most important individually. Then, in ascending importance, each of these joins the removed
    ones, and the unit returns whose exit makes ‖Σ g‖² of all removed ones, over the examples, the least: the increase of the
    loss if they are removed together.
    """
    gram = (gradients.T @ gradients).astype(np.float64)
    order = np.argsort(np.diag(gram), kind="stable")
    gone = np.zeros(len(order), bool)
    gone[order[: len(order) - keep]] = True
    if not gone.any():
        return list(range(len(order)))
    together = gram @ gone  # Σ over the removed units of g · g_unit
    for unit in order[len(order) - keep :]:
        # The unit joins the removed ones.
        gone[unit] = True
        together = together + gram[unit]
        # One of them returns: ‖Σ g‖² without unit u changes by g_u · g_u − 2 g_u · Σ g.
        removed = np.flatnonzero(gone)
        changes = np.diag(gram)[removed] - 2 * together[removed]
        returning = removed[np.argmin(changes)]
        gone[returning] = False
        together = together - gram[returning]
    return np.flatnonzero(~gone).tolist()
