"""Byte-pair encoding: which merges make a token, and a model of some of its tokens.

The merges inside a token involve only its own letters: one that crossed its ends would make it part of another token. So a text is merged
as before if its tokens, and all that they are merged from, are kept; merges that are dropped were never the first to apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any


def merge_parts(model: Mapping[str, Any]) -> Callable[[str], Iterable[str]]:
    """Return a function: token -> all tokens that occur while its characters are merged; [] if merging them does not give it."""
    ranks = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}

    def merged(token: str) -> list[str]:
        symbols, seen = [*token], [*token]
        while len(symbols) > 1:
            pairs = [*pairwise(symbols)]
            best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                return []
            place = pairs.index(best)
            symbols[place : place + 2] = ["".join(best)]
            seen.append(symbols[place])
        return seen

    return merged


def cut_merges(model: Mapping[str, Any], kept: list[str]) -> dict[str, Any]:
    """Return the model with the merges whose parts and result are `kept`, in order."""
    numbers = {token: number for number, token in enumerate(kept)}
    merges = [
        [left, right]
        for left, right in model["merges"]
        if left in numbers and right in numbers and left + right in numbers
    ]
    return {**model, "vocab": numbers, "merges": merges}
