"""The goal of a search for int8: how many decisions may change, on how many texts that is judged, and the outcome in words."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import Any

from .percentiles import CONFIDENCE

LEAST_TEXTS, MOST_TEXTS = 1000, 10_000


def texts_to_judge(max_flips: float) -> int:
    """Return on how many texts to judge a goal of `max_flips` percent: as many as have two flips at that rate, at least
    1,000, at most 10,000."""
    return max(ceil(min(200 / max_flips, MOST_TEXTS)) if max_flips else 0, LEAST_TEXTS)


def flip_rate(flips: int, texts: int) -> float:
    """Return the rate of changed decisions, in percent, that is compared with a goal: the lower bound of Clopper and Pearson
    (1934) with confidence ½. That is the median-unbiased estimate, near (flips − ⅓) / texts.

    Why this bound: the upper 95% bound demands a proof. With a goal of .2% not even 1,000 texts without a flip are one
    (1,500 are), which is stricter than "at most .2%". The lower 95% bound only demands that the texts do not refute the
    goal: it accepts 5 flips of 1,000 texts, .5%, and 1 of 30. The plain rate of fewer than 500 texts allows no flip, so on
    499 texts a mix that meets the goal, at .2%, fails in 63% of the cases. With this bound a mix whose true rate is the goal
    passes at least half of the time, for any number of texts, and no goal is empty: for .2%, 1 flip of 347 texts passes, and
    2 of 1,000, where a true rate of .5% passes in 12% of the cases, and one of 1% in .3%. `flip_interval` gives the
    uncertainty.
    """
    return _lower(flips, texts, 0.5)


def flip_interval(flips: int, texts: int) -> tuple[float, float]:
    """Return the 95% interval of the same rate, in percent (Clopper and Pearson 1934: its coverage is at least that)."""
    tail = (1 + CONFIDENCE) / 2
    return _lower(flips, texts, tail), 100 - _lower(texts - flips, texts, tail)


def _lower(count: int, total: int, confidence: float) -> float:
    from scipy.stats import beta

    return 100 * float(beta.ppf(1 - confidence, count, total - count + 1)) if count else 0.0


def in_words(goal: Mapping[str, float]) -> str:
    """Spell a goal, or what was reached: `0.5 points and 0.2% flips`, `0.1 points gained`."""
    gained = " gained" if goal["drop"] < 0 else ""  # only in the outcome of a search
    return f"{abs(goal['drop']):g} points{gained}" + (f" and {goal['flips']:g}% flips" if "flips" in goal else "")


def outcome(info: Mapping[str, Any]) -> str:
    """Describe what the model of a search's `info` lost, and on how many texts:
    `0.1 points on 249 texts of the tuning split, …`."""
    reached, texts = info["reached"], info.get("texts")
    if texts is None or "flipped" not in reached:  # an old record, or a task without decisions
        return f"{in_words(reached)} on the tuning split"
    points = f"{in_words({'drop': reached['drop']})} on {texts['tuning']:,} texts of the tuning split"
    total, flips = sum(texts.values()), reached["flipped"]
    further = f" and {texts['train']:,} more of train, which the model has seen" if texts.get("train") else ""
    target = texts_to_judge(info["goal"].get("flips", 0))
    fewer = f" (all that there are; {target:,} were wanted)" if "flips" in info["goal"] and total < target else ""
    low, high = reached["flips_interval"]
    counted = f"{flips:,} {'flip' if flips == 1 else 'flips'} of {total:,} texts, {reached['flips']:.2f}%"
    rate = f"{counted} ({_judged_rate(info)}95% interval {low:.2f} to {high:.2f}%)"
    return f"{points}; {rate}, counted on these{further}{fewer}"


def _judged_rate(info: Mapping[str, Any]) -> str:
    """Return `flip_rate` in words, where it meets a goal that the plain rate would miss."""
    goal, plain = info["goal"].get("flips", inf), info["reached"]["flips"]
    judged = info["reached"].get("flips_judged", plain)
    return f"{judged:.2f}% by the estimate that is held against the goal; " if judged <= goal < plain else ""
