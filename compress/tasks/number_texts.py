"""Numbers as written in files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def are_scores(values: Sequence[Any]) -> bool:
    """Whether all are numbers, and at least one is not written as a whole number."""
    texts = {str(value).strip() for value in values if not isinstance(value, bool)}
    return len(texts) > 0 and all(map(is_number, map(str, values))) and any(not _is_whole(text) for text in texts)


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
