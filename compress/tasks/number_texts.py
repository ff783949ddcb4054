"""Numbers as files write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def are_scores(values: Sequence[Any]) -> bool:
    """All are numbers, and some are written as numbers that need not be whole."""
    texts = {str(value).strip() for value in values if not isinstance(value, bool)}
    return len(texts) > 0 and all(map(is_number, map(str, values))) and any(not _is_whole(text) for text in texts)


def is_number(text: str) -> bool:
    """A finite one, with a decimal point if any."""
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def pointed(value: Any) -> str:
    """A number with a decimal comma as one with a point."""
    return str(value).replace(",", ".", 1)


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()
