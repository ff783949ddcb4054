"""The attention of a teacher and its student on one text, and its encoding in a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from jaxtyping import Float

MOST_TOKENS = 64
_STEPS = 1000  # steps of a weight: three digits
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MOST_CHARACTERS = 1_850_000  # of all weights, so that a page has less than two million bytes


@dataclass(frozen=True)
class ModelMaps:
    """`weights`: by layer, from the first; None for a layer whose heads were all pruned. `cut`: whether the text is longer."""

    name: str
    tokens: tuple[str, ...]
    weights: tuple[Float[np.ndarray, "head query key"] | None, ...]
    cut: bool


@dataclass(frozen=True)
class AttentionMaps:
    """`texts`: the user's, one or a pair. `matched`: for each layer of the student that of the teacher, from 1; `matching`: what matched
    them."""

    title: str
    teacher: ModelMaps
    student: ModelMaps
    matched: tuple[int, ...]
    matching: str
    run: str
    texts: tuple[str, ...]


def token_limit(heads: int) -> int:
    """Return how many tokens a page can have in the maps of so many `heads`, those of all layers of both models."""
    return min(MOST_TOKENS, isqrt(_MOST_CHARACTERS // (2 * heads)))


def page_data(maps: AttentionMaps) -> str:
    """Return JSON that is safe in a page: tokens, the match, and for each layer the heads and their weights, two base-64 digits each."""
    document = {
        "matched": maps.matched,
        "matching": maps.matching,
        "digits": _DIGITS,
        "steps": _STEPS,
        **{role: _model(each) for role, each in (("teacher", maps.teacher), ("student", maps.student))},
    }
    return json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")


def _model(maps: ModelMaps) -> dict[str, object]:
    return {
        "name": maps.name,
        "tokens": maps.tokens,
        "heads": [0 if layer is None else len(layer) for layer in maps.weights],
        "weights": ["" if layer is None else _encode_weights(layer) for layer in maps.weights],
    }


def _encode_weights(weights: Float[np.ndarray, "head query key"]) -> str:
    steps = np.rint(weights.astype(np.float64) * _STEPS).astype(np.int64).ravel()
    return "".join(_pairs(steps.tolist()))


def _pairs(steps: Sequence[int]) -> list[str]:
    return [_DIGITS[step // 64] + _DIGITS[step % 64] for step in steps]
