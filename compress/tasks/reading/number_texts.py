"""Numbers as written in files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ...files.tabular import flag, is_number

_MOST_CLASSES = 10  # more distinct whole numbers are scores
_REPEATED = 4  # fewest examples of a class, on average; a few rows of scores may all be whole by chance
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
_DECIMAL = re.compile(r"[-+]?([0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+),[0-9]+")  # 3,5 and 1.234,5


def are_scores(values: Sequence[Any]) -> bool:
    """Whether all are numbers, and at least one is not written as a whole number."""
    texts = {str(value).strip() for value in values if not isinstance(value, bool)}
    return len(texts) > 0 and all(map(is_number, map(str, values))) and any(not _is_whole(text) for text in texts)


def whole_values(values: Sequence[Any]) -> list[float]:
    """Return the distinct values of numbers that may be classes as well as scores: all are whole, and each is frequent; else none."""
    classes = sorted({float(value) for value in values})
    few = len(classes) <= _MOST_CLASSES and len(classes) * _REPEATED <= len(values)
    return classes if few and all(value.is_integer() for value in classes) else []


def parse_number(value: Any) -> float:
    """Return the number that a value of a file is; NaN: it is none, as 0 and 1 written as false and true."""
    try:
        unfit = isinstance(value, bool) or (isinstance(value, str) and not is_number(value))
        return math.nan if unfit else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def relevance_of(value: Any) -> Any:
    """Return the value of a passage's relevance, with 1 and 0 for true and false."""
    relevant = flag(value)
    return value if relevant is None else float(relevant)


def comma_hint(value: Any) -> str:
    """Return what to write in place of a number with commas, which stand before decimals or between thousands; nothing for other values."""
    if not isinstance(value, str) or "," not in value:
        return ""
    text = value.strip()
    decimal, whole = text.replace(".", "").replace(",", "."), text.replace(",", "")
    if not _THOUSANDS.fullmatch(text):
        return f"; write {decimal!r}" if _DECIMAL.fullmatch(text) else ""
    either = f", or {decimal!r} if the comma is before decimals" if _DECIMAL.fullmatch(text) else ""
    return f"; write {whole!r}{either}"


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()
