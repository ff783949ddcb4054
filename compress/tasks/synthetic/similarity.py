"""Sentence pairs with a similarity from 0 to 5: how many of the parts agree, in meaning rather than spelling."""

from __future__ import annotations

from .draw import Draw

# A part of the sentence: its weight, and groups of words with one meaning.
PARTS = {
    "quality": (0.75, "old/ancient small/tiny/little big/huge/large happy/cheerful angry/furious"),
    "actor": (1.5, "man/guy woman/lady kid/child doctor/physician teacher/instructor robber/thief cook/chef"),
    "action": (1.5, "buys/purchases fixes/repairs carries/hauls paints/colors hides/conceals grabs/seizes"),
    "thing": (0.75, "car/automobile sofa/couch picture/photo stone/rock present/gift boat/ship bag/sack"),
    "place": (0.5, "inside/indoors outside/outdoors nearby/close downtown/uptown"),
}
GROUPS = [(weight, [group.split("/") for group in words.split()]) for weight, words in PARTS.values()]


def similarity(draw: Draw) -> tuple[str, str, float]:
    """(first, second, score). Parts agree by a chance drawn per pair, so that all scores occur."""
    agreement = draw.one((0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    first, second, score = [], [], 0.0
    for weight, groups in GROUPS:
        one, other = draw.two(groups)
        agrees = draw.chance(agreement)
        first.append(draw.one(one))
        second.append(draw.one(one if agrees else other))
        score += weight * agrees
    return _text(draw, first), _text(draw, second), score


def _text(draw: Draw, words: list[str]) -> str:
    quality, actor, action, thing, place = words
    if draw.chance(0.3):
        return f"{place} the {quality} {actor} {action} the {thing} ."
    return f"the {quality} {actor} {action} the {thing} {place} ."
