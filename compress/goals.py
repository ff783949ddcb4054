"""The goal of a search for int8: how many decisions may change, of how many texts that is judged, and the outcome in words."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from .percentiles import LEVEL

LEAST_TEXTS, MOST_TEXTS = 1000, 10_000


def texts_to_judge(max_flips: float) -> int:
    """Texts on which a goal of `max_flips` percent is judged: as many as make two flips of it, at least 1,000, at most 10,000."""
    return max(ceil(min(200 / max_flips, MOST_TEXTS)) if max_flips else 0, LEAST_TEXTS)


def flip_rate(flips: int, texts: int) -> float:
    """The share of decisions that change, in percent, as a goal is held against it: the lower bound of Clopper and Pearson
    (1934) with confidence ½. That is the median-unbiased estimate, near (flips − ⅓) / texts.

    Why this bound: the upper one of 95% asks for a proof. With a goal of .2% not even 1,000 texts without a flip are one
    (1,500 are): stricter than "at most .2%". The lower one of 95% asks only that the texts do not refute the goal: it lets
    5 flips of 1,000 texts pass, .5%, and 1 of 30. The plain share of fewer than 500 texts allows none, so that of
    499 texts a mix which keeps the goal, at .2%, fails in 63% of the cases. By this bound a mix whose true rate is the goal
    passes as often as not at least, however many texts there are, and no goal is empty: for .2%, 1 flip of 347 texts passes, and 2
    of 1,000, where a true rate of .5% passes in 12% of the cases, and one of 1% in .3%. `flip_interval` says how
    sure that is.
    """
    return _lower(flips, texts, 0.5)


def flip_interval(flips: int, texts: int) -> tuple[float, float]:
    """The 95% interval of the same share, in percent (Clopper and Pearson 1934: it covers at least so often)."""
    tail = (1 + LEVEL) / 2
    return _lower(flips, texts, tail), 100 - _lower(texts - flips, texts, tail)


def _lower(count: int, total: int, confidence: float) -> float:
    from scipy.stats import beta

    return 100 * float(beta.ppf(1 - confidence, count, total - count + 1)) if count else 0.0


def in_words(goal: Mapping[str, float]) -> str:
    """`0.5 points and 0.2% flips`."""
    return f"{goal['drop']:g} points" + (f" and {goal['flips']:g}% flips" if "flips" in goal else "")


def outcome(info: Mapping[str, Any]) -> str:
    """What the model of a search's `info` lost, and on how many texts: `0.1 points on 249 texts of the tuning split, …`."""
    reached, texts = info["reached"], info.get("texts")
    if (
        texts is None or "flipped" not in reached
    ):  # of before flips were counted on further texts, or a task without decisions
        return f"{in_words(reached)} on the tuning split"
    points = f"{reached['drop']:g} points on {texts['tuning']:,} texts of the tuning split"
    total, flips = sum(texts.values()), reached["flipped"]
    further = f" and {texts['train']:,} more of train, which the model has seen" if texts.get("train") else ""
    asked = texts_to_judge(info["goal"].get("flips", 0))
    fewer = f" (all that there are; {asked:,} were wanted)" if "flips" in info["goal"] and total < asked else ""
    low, high = reached["flips_interval"]
    rate = f"{flips:,} flips of {total:,} texts, {reached['flips']:.2f}% (95% interval {low:.2f} to {high:.2f}%)"
    return f"{points}; {rate}, counted on these{further}{fewer}"
