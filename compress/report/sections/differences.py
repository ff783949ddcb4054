"""A difference between two models in a table's cell, and whether it may be chance."""

from __future__ import annotations

from ...results.fidelity import Delta
from ..grouping.multiple_comparisons import Corrected
from ..text import numbers
from ..text.cells import NOTHING, Cell

NOT_DISTINGUISHABLE = "not distinguishable"


def difference_cell(delta: Delta | None, corrected: Corrected | None = None) -> Cell:
    """Format e.g. `−2.06 (−3.56 to −0.57)`, noting whether it may be chance."""
    if delta is None:
        return Cell(NOTHING)
    text = f"{numbers.signed(delta.points)} ({numbers.signed(delta.low)} to {numbers.signed(delta.high)})"
    return Cell(text, chance_note(delta, corrected))


def chance_note(delta: Delta, corrected: Corrected | None = None) -> str:
    """Return why a difference may be chance; empty if it is not. `corrected`: if it is one of a family of comparisons."""
    if delta.distinguishable and corrected and not corrected.distinguishable:
        return f"{NOT_DISTINGUISHABLE} (Holm over {corrected.family}: p {numbers.probability(corrected.p)})"
    return "" if delta.distinguishable else NOT_DISTINGUISHABLE
