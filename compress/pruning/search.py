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


def neuron_counts(neurons: int) -> np.ndarray:
    """Multiples of 16, and all of them."""
    return np.unique([*range(MULTIPLE, neurons, MULTIPLE), neurons])


def choose_widths(losses: Sequence[np.ndarray], widths: Sequence[Widths], budget: float) -> list[int]:
    """Of each part the number of units to keep so that the sum of losses is least and that of costs at most `budget`, or the narrowest
    widths where these cost more.

    `losses`: of each part [option], as its widths. Least to the precision at which costs are counted, which are rounded up to 1/20,000
    of the whole's.
    """
    unit = sum(float(each.costs[-1]) for each in widths) / _UNITS_OF_BUDGET
    costs = [np.ceil(each.costs / unit - 1e-6).astype(int) for each in widths]
    options = least_loss(losses, costs, int(budget / unit + 1e-6))
    if options is None:
        return [int(each.counts[0]) for each in widths]
    return [int(each.counts[option]) for each, option in zip(widths, options, strict=True)]


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
