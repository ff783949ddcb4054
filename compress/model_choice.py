"""Choose among several models: which meet the limits, which no other beats, and which one to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import CompressError

_SAME_TIME = 1.05  # times the quickest time: medians are measured to within ±5%
_SAME_SIZE = 1.01  # times the smallest file
_DIGITS = 9  # of points: 57 of 100 right is 56.99999999999999 points


@dataclass(frozen=True)
class Measured:
    """Measurements of a model, the `number`th of several. `score`: points on the tuning split, more is better. `latency_ms`:
    of one text; None in all models if it does not count. `size_mb`: of its file, in MB (10^6 bytes)."""

    number: int
    score: float
    size_mb: float
    latency_ms: float | None = None

    @property
    def costs(self) -> tuple[float, float]:
        """The values to minimize; a latency that does not count is 0."""
        return (self.latency_ms or 0.0, self.size_mb)


@dataclass(frozen=True)
class Limits:
    """At most so many milliseconds and MB, at least so many points; None: no limit.

    Raises `CompressError` if none of the three is set, or for one that nothing can meet.
    """

    max_latency_ms: float | None = None
    max_size_mb: float | None = None
    min_score: float | None = None

    def __post_init__(self) -> None:
        if self.max_latency_ms is None and self.max_size_mb is None and self.min_score is None:
            raise CompressError(
                "expected at least one limit, --max-latency-ms, --max-size-mb or --min-score; found none"
            )
        for option, value in (("--max-latency-ms", self.max_latency_ms), ("--max-size-mb", self.max_size_mb)):
            if value is not None and not 0 < value < float("inf"):
                raise CompressError(f"{option}: expected a number above 0, found {value:g}")
        if self.min_score is not None and not -100 <= self.min_score <= 100:
            raise CompressError(f"--min-score: expected points from -100 to 100, found {self.min_score:g}")
        if self.min_score is not None and 0 < self.min_score <= 1:
            percent = 100 * self.min_score
            raise CompressError(
                f"--min-score: {self.min_score:g} is read as points of 100; "
                + (f"for {percent:g}% give {percent:g}" if percent > 1 else "expected more than 1, such as 88 for 88%")
            )

    def violations(self, model: Measured) -> dict[str, float]:
        """Map each limit that is set to how far the model misses it, as a share of the limit (for the score: in points, over
        100); at most 0 if it is met."""
        misses = {}
        if self.max_latency_ms is not None:
            if model.latency_ms is None:
                raise ValueError(f"model {model.number}: --max-latency-ms is set, and no latency was measured")
            misses["--max-latency-ms"] = model.latency_ms / self.max_latency_ms - 1
        if self.max_size_mb is not None:
            misses["--max-size-mb"] = model.size_mb / self.max_size_mb - 1
        if self.min_score is not None:
            misses["--min-score"] = round(self.min_score - model.score, _DIGITS) / 100
        return misses

    def meets(self, model: Measured) -> bool:
        return all(value <= 0 for value in self.violations(model).values())

    def missed(self, model: Measured) -> list[str]:
        """Return a line for each limit that the model misses."""
        criteria = {
            "--max-latency-ms": (self.max_latency_ms, model.latency_ms, "at most", "ms"),
            "--max-size-mb": (self.max_size_mb, model.size_mb, "at most", "MB"),
            "--min-score": (self.min_score, model.score, "at least", "points"),
        }
        over = [option for option, value in self.violations(model).items() if value > 0]
        return [
            f"{option}: expected {word} {limit:g} {unit}, found {value:.6g}"
            for option, (limit, value, word, unit) in criteria.items()
            if option in over
        ]


@dataclass(frozen=True)
class Choice:
    """The chosen model, and a line for each limit that it misses; without one it meets all."""

    model: Measured
    missed: tuple[str, ...] = ()


def pareto_front(models: Sequence[Measured]) -> list[Measured]:
    """Return the models that no other beats: none has at least the score with no more time and size, and is better in one of
    them. Best score first. Equal models are all kept."""
    kept = [model for model in models if not any(_beats(other, model) for other in models)]
    return sorted(kept, key=_order)


def choose(models: Sequence[Measured], limits: Limits) -> Choice:
    """Choose a model. Of those that meet all limits, take the one with the best score or, if a minimum score is set, the smallest
    of those within 5% of the quickest; of sizes within 1% of it, the one with the best score. If none meets the limits, take
    the one whose misses, as shares of the limits, have the least sum.

    Ties go to the best score, the quickest, the smallest, then the first. Expects at least one model.
    """
    meeting = [model for model in models if limits.meets(model)]
    if meeting:
        return Choice(min(meeting, key=_order) if limits.min_score is None else _cheapest(meeting))
    nearest = min(
        models, key=lambda model: (sum(max(0.0, v) for v in limits.violations(model).values()), *_order(model))
    )
    return Choice(nearest, tuple(limits.missed(nearest)))


def _beats(one: Measured, other: Measured) -> bool:
    own_values, other_values = (-one.score, *one.costs), (-other.score, *other.costs)
    return own_values != other_values and all(a <= b for a, b in zip(own_values, other_values, strict=True))


def _order(model: Measured) -> tuple[float, float, float, int]:
    return (-model.score, *model.costs, model.number)


def _cheapest(models: Sequence[Measured]) -> Measured:
    """Return the best of the models whose times cannot be told from the quickest and whose files are hardly larger than the smallest of
    these."""
    quickest = min(model.costs[0] for model in models)
    near = [model for model in models if model.costs[0] <= _SAME_TIME * quickest]
    smallest = min(model.size_mb for model in near)
    return min((model for model in near if model.size_mb <= _SAME_SIZE * smallest), key=_order)
