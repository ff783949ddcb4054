"""Sentence pairs with a similarity from 0 to 5: how many of their parts agree, in meaning rather than spelling."""

from __future__ import annotations

from .draw import Draw

# Part of the sentence -> its weight in the score, and groups of words with one meaning, common ones first.
PARTS = {
    "actor": (1.25, "man/guy/gentleman woman/lady/girl robot/machine"),
    "negation": (1.25, "just/now/still never/hardly"),
    "action": (1.25, "buys/purchases/orders fixes/repairs/mends breaks/smashes/cracks"),
    "thing": (0.75, "car/automobile/vehicle sofa/couch/settee boat/ship/vessel"),
    "place": (0.5, "indoors/inside outdoors/outside"),
}
GROUPS = [(weight, [group.split("/") for group in words.split()]) for weight, words in PARTS.values()]
SHARES = (0.7, 0.9, 1.0)  # cumulative; unequal, so that a rare word alone is informative about the score
QUALITIES = ("", "", "old", "small", "red", "shiny", "strange", "heavy", "cheap", "blue")
OPENINGS = ("", "", "", "in may", "on monday", "at noon", "once more", "as planned", "this time", "in town")


def similarity(draw: Draw) -> tuple[str, str, float]:
    """Return (first, second, score). The probability that parts agree is random per pair, so that all scores occur."""
    agreement = draw.one((0.0, 0.0, 0.2, 0.4, 0.7, 1.0))
    first, second, score = [], [], 0.0
    for weight, groups in GROUPS:
        one = _group(draw, groups)
        other = one if draw.chance(agreement) else _group(draw, groups)
        first.append(draw.one(one))
        second.append(draw.one(other))
        score += weight * (one is other)
    return _draw_text(draw, first), _draw_text(draw, second), score


def _group(draw: Draw, groups: list[list[str]]) -> list[str]:
    position = draw.below(100) / 100
    chosen = next(index for index, share in enumerate(SHARES) if position < share)
    return groups[min(chosen, len(groups) - 1)]


def _draw_text(draw: Draw, words: list[str]) -> str:
    actor, negation, action, thing, place = words
    parts = (draw.one(OPENINGS), "the", actor, negation, action, "the", draw.one(QUALITIES), thing, place, ".")
    return " ".join(part for part in parts if part)
