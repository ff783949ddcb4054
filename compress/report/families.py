"""Comparisons that are corrected together for their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..recorded_fidelity import Delta
from ..significance import LEVEL, holm, p_of


class Corrected(NamedTuple):
    """A p of one of `family` comparisons, corrected by Holm. The interval alone speaks for a comparison without others."""

    p: float
    family: int

    @property
    def distinguishable(self) -> bool:
        return self.family == 1 or self.p < 1 - LEVEL


def corrected(family: Sequence[Delta]) -> list[Corrected]:
    return [Corrected(p, len(family)) for p in holm([p_of(delta) for delta in family])]
