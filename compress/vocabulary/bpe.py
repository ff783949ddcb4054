"""Byte-pair encoding: which merges make a token, and a model of some of its tokens.

The merges inside a token are those of its letters alone: no other one reaches over its ends, or it would be no token of the text. So
a text whose tokens stay, with all that they are merged from, is merged as before; what is left out was never the first to be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any


def parts(model: Mapping[str, Any]) -> Callable[[str], Iterable[str]]:
    """A token -> all tokens that come up while its characters are merged; itself alone where they do not make it."""
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


def cut(model: Mapping[str, Any], kept: list[str]) -> dict[str, Any]:
    """With the merges whose two parts and outcome are `kept`, in their order."""
    numbers = {token: number for number, token in enumerate(kept)}
    merges = [
        [left, right]
        for left, right in model["merges"]
        if left in numbers and right in numbers and left + right in numbers
    ]
    return {**model, "vocab": numbers, "merges": merges}
