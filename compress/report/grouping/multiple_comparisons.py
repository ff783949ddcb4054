"""Correction of comparisons for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from ...results.fidelity import Delta
from ...stats.percentiles import CONFIDENCE
from ...stats.significance import holm, p_value


class Corrected(NamedTuple):
    """The p-value of one of `family` comparisons, corrected by Holm. A single comparison is judged by its interval alone."""

    p: float
    family: int

    @property
    def distinguishable(self) -> bool:
        return self.family == 1 or self.p < 1 - CONFIDENCE


class Compared(Protocol):
    """A frozen dataclass with a difference, and its correction."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def delta(self) -> Delta | None: ...
    @property
    def corrected(self) -> Corrected | None: ...


Member = TypeVar("Member", bound=Compared)


def correct_family(family: Sequence[Delta]) -> list[Corrected]:
    return [Corrected(p, len(family)) for p in holm([p_value(delta) for delta in family])]


def as_family(members: Sequence[Member]) -> list[Member]:
    """Return the members with their differences corrected together; those without a difference are unchanged."""
    marks = iter(correct_family([member.delta for member in members if member.delta]))
    return [replace(member, corrected=next(marks)) if member.delta else member for member in members]
