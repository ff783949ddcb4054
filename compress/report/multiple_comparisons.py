"""Comparisons that are corrected together for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from ..percentiles import LEVEL
from ..results.fidelity import Delta
from ..significance import holm, p_of


class Corrected(NamedTuple):
    """A p of one of `family` comparisons, corrected by Holm. The interval alone speaks for a comparison without others."""

    p: float
    family: int

    @property
    def distinguishable(self) -> bool:
        return self.family == 1 or self.p < 1 - LEVEL


class Compared(Protocol):
    """A frozen dataclass with a difference, and how it is corrected."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def delta(self) -> Delta | None: ...
    @property
    def corrected(self) -> Corrected | None: ...


Member = TypeVar("Member", bound=Compared)


def corrected(family: Sequence[Delta]) -> list[Corrected]:
    return [Corrected(p, len(family)) for p in holm([p_of(delta) for delta in family])]


def as_family(members: Sequence[Member]) -> list[Member]:
    """With their differences corrected together; those without one stay as they are."""
    marks = iter(corrected([member.delta for member in members if member.delta]))
    return [replace(member, corrected=next(marks)) if member.delta else member for member in members]
