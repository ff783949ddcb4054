"""Numbers as written in files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_MOST_CLASSES = 10  # more distinct whole numbers are scores
_REPEATED = 4  # fewest examples of a class, on average; a few rows of scores may all be whole by chance


def are_scores(values: Sequence[Any]) -> bool:
    """Whether all are numbers, and at least one is not written as a whole number."""
    texts = {str(value).strip() for value in values if not isinstance(value, bool)}
    return len(texts) > 0 and all(map(is_number, map(str, values))) and any(not _is_whole(text) for text in texts)


def whole_values(values: Sequence[Any]) -> list[float]:
    """Return the distinct values of numbers that may be classes as well as scores: all are whole, and each is frequent; else none."""
    classes = sorted({float(value) for value in values})
    few = len(classes) <= _MOST_CLASSES and len(classes) * _REPEATED <= len(values)
    return classes if few and all(value.is_integer() for value in classes) else []


def is_number(text: str) -> bool:
    """Whether the text is a finite number, with a decimal point if any."""
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def with_decimal_point(value: Any) -> str:
    """Return a number with its decimal comma replaced by a point."""
    return str(value).replace(",", ".", 1)


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()
