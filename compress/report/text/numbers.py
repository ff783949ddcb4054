"""Number formats of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import stdev
from typing import Any

MINUS = "−"  # the minus sign, not the hyphen: aligned digits, and no line break after it


def points(value: float) -> str:
    """Format a score, in points; `0.00` has no sign."""
    text = f"{value:.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)


def signed(value: float) -> str:
    """Format a difference, in points; `0.00` has no sign."""
    text = f"{value:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)


def scores(values: list[float]) -> str:
    """Format one score, or mean ± sample standard deviation over seeds."""
    mean = points(sum(values) / len(values))
    return mean if len(values) < 2 else f"{mean} ± {stdev(values):.2f}"


def extremes(show: Callable[[Any], str], values: Sequence[Any]) -> str:
    """Format the smallest and the largest value, as `show` does: `6.07 to 6.08`, or one if they look the same."""
    return " to ".join(dict.fromkeys(map(show, (min(values), max(values)))))


def significant(value: float, digits: int = 3) -> str:
    """Format with three significant digits, thousands grouped, never in exponent form: `0.0123`, `2.31`, `22,500`."""
    if value == 0:
        return "0"
    magnitude = len(f"{abs(value):.0f}") if abs(value) >= 1 else -_leading_zeros(value)
    return f"{value:,.{max(0, digits - magnitude)}f}".replace("-", MINUS)


def _leading_zeros(value: float) -> int:
    return -int(f"{value:e}".split("e")[1]) - 1


def probability(value: float) -> str:
    """Format a p-value: `0.061`, `0.0021`."""
    return significant(value, 2)


def megabytes(size: int) -> str:
    """Format bytes as decimal megabytes, as file managers and the papers count."""
    return significant(size / 1e6)


def millions(count: float) -> str:
    return significant(count / 1e6)


def times(ratio: float) -> str:
    """Format a speed-up: `5.1×`, `0.45×`."""
    return f"{ratio:.1f}×" if ratio >= 0.95 else f"{ratio:.2f}×"


def percent(ratio: float) -> str:
    return f"{100 * ratio:.0f}%" if ratio >= 0.1 else f"{100 * ratio:.1f}%"


def share(value: float) -> str:
    """Format a share of examples, or a confidence: `98.8%`."""
    return f"{100 * value:.1f}%"


def seconds(value: float) -> str:
    """Format a duration, more coarsely as it grows: `4.2 s`, `3 min 12 s`, `2 h 05 min`."""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def shape(batch: int, length: int) -> str:
    """Format a shape: `1 × 32`; the task's own lengths for 0 × 0."""
    return f"{batch} × {length}" if batch else "own lengths"
