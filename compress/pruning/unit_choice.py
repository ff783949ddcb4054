"""Which units of each layer stay under a budget: widths that lose the least importance, then the units themselves (Kwon et al. 2022,
arXiv:2204.09656, §4.2 and §4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MULTIPLE = 16  # of neurons: int8 kernels compute tiles of as many columns
_UNITS_OF_BUDGET = 20_000  # that the cost of the whole model is counted in


@dataclass(frozen=True)
class Widths:
    """How many units a part of a layer may keep, rising: `counts` [option], and what it then costs: `costs` [option]."""

    counts: np.ndarray
    costs: np.ndarray


def head_counts(heads: int) -> np.ndarray:
    """From none to all."""
    return np.arange(heads + 1)


def neuron_counts(neurons: int) -> np.ndarray:
    """None, multiples of 16, and all of them."""
    return np.unique([*range(0, neurons, MULTIPLE), neurons])


def choose_widths(
    losses: Sequence[np.ndarray], widths: Sequence[Widths], budget: float, *, one_of: Sequence[int]
) -> list[int]:
    """Of each part the number of units to keep so that the sum of losses is least and that of costs at most `budget`, or the narrowest
    widths where these cost more. Any part may keep none, but of the parts `one_of`, by their places, one keeps a unit.

    `losses`: of each part [option], as its widths, none first. Least to the precision at which costs are counted, which are rounded up
    to 1/20,000 of the whole's.
    """
    unit = sum(float(each.costs[-1]) for each in widths) / _UNITS_OF_BUDGET
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
    """The place, among these, of the part whose narrowest width but none costs the least more than none."""
    having = [place for place in one_of if len(widths[place].counts) > 1]
    return min(having, key=lambda place: float(widths[place].costs[1] - widths[place].costs[0]))


def _least_with_one_of(
    losses: Sequence[np.ndarray], costs: Sequence[np.ndarray], budget: int, one_of: Sequence[int]
) -> list[int] | None:
    """As `least_loss`, of the choices where a part of `one_of` has another option than its first."""
    found: list[tuple[float, list[int]]] = []
    for place in one_of:
        never = np.where(np.arange(len(losses[place])) == 0, np.inf, losses[place])
        options = least_loss([*losses[:place], never, *losses[place + 1 :]], costs, budget)
        if options is not None:
            found.append((sum(float(loss[each]) for loss, each in zip(losses, options, strict=True)), options))
    return min(found)[1] if found else None


def least_loss(losses: Sequence[np.ndarray], costs: Sequence[np.ndarray], budget: int) -> list[int] | None:
    """The option of each group with the least sum of losses whose costs, whole numbers, are at most `budget` in sum; None: there is no
    such choice. A dynamic program over the budget, exact."""
    best, choices = np.zeros(budget + 1), []
    for group, prices in zip(losses, costs, strict=True):
        found, chosen = np.full(budget + 1, np.inf), np.zeros(budget + 1, np.int32)
        for option, (loss, price) in enumerate(zip(group, prices, strict=True)):
            if price > budget:
                continue
            tried = best[: budget + 1 - price] + loss
            better = tried < found[price:]
            found[price:][better], chosen[price:][better] = tried[better], option
        best, choices = found, [*choices, chosen]
    if not np.isfinite(best[budget]):
        return None
    options, left = [], budget
    for chosen, prices in zip(reversed(choices), reversed(list(costs)), strict=True):
        options.append(int(chosen[left]))
        left -= int(prices[options[-1]])
    return options[::-1]


def rearranged(gradients: np.ndarray, keep: int) -> list[int]:
    """The places, rising, of the `keep` units that stay, by gradients [example, unit] of their masks.

    First the most important by themselves. Then each of these in rising importance joins those that go, and the one leaves them
    whose stay makes the gradients of all that go, ‖Σ g‖² over the examples, the least: what the loss gains where they go together.
    """
    gram = (gradients.T @ gradients).astype(np.float64)
    order = np.argsort(np.diag(gram), kind="stable")
    gone = np.zeros(len(order), bool)
    gone[order[: len(order) - keep]] = True
    if not gone.any():
        return list(range(len(order)))
    together = gram @ gone  # Σ over the gone of g · g_unit
    for unit in order[len(order) - keep :]:
        gone[unit] = True
        together = together + gram[unit]
        places = np.flatnonzero(gone)
        left = np.diag(gram)[places] - 2 * together[places]  # what ‖Σ g‖² changes by without each
        stays = places[np.argmin(left)]
        gone[stays] = False
        together = together - gram[stays]
    return np.flatnonzero(~gone).tolist()
