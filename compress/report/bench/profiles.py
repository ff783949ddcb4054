"""Where a model's time goes: a table of its operators, and their distance from the arithmetic floor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..text import numbers
from ..text.cells import NOTHING, Column, Line, Table, text_cells
from .measurements import Measurements

if TYPE_CHECKING:
    from ...bench.profile import Profile


@dataclass(frozen=True)
class ProfileSection:
    """One model at one shape."""

    table: Table
    words: tuple[str, ...]


def profile_sections(measured: Measurements) -> Iterator[ProfileSection]:
    """Yield a section for each model and shape."""
    for name, profiles in measured.profiles.items():
        yield from (ProfileSection(_operators(name, profile), _floor(profile)) for profile in profiles)


def _operators(name: str, profile: Profile) -> Table:
    """Return the operators, the longest time first."""
    columns = (
        Column("Operator", numeric=False),
        Column("Group", numeric=False),
        Column("Count"),
        Column("Time", "ms"),
        Column("Share"),
        Column("MACs", "M"),
    )
    lines = [
        Line(
            text_cells(
                kind.op,
                kind.group,
                str(kind.count),
                numbers.significant(kind.milliseconds),
                numbers.percent(kind.share),
                numbers.millions(kind.macs) if kind.macs else NOTHING,
            )
        )
        for kind in profile.kinds
    ]
    shape = numbers.shape(profile.batch, profile.length)
    return Table(f"{name}, {shape}, one thread: time by operator", columns, tuple(lines))


def _floor(profile: Profile) -> tuple[str, ...]:
    shares = ", ".join(f"{group} {numbers.percent(share)}" for group, share in profile.groups.items())
    rates = ", ".join(f"{precision} {numbers.significant(rate / 1e9)}" for precision, rate in profile.rates.items())
    whole, floor = numbers.significant(profile.whole_ms), numbers.significant(profile.floor_ms)
    return (
        f"Matmuls by weights: {numbers.percent(profile.gemm_share)}. By group: {shares}.",
        f"Operators: {numbers.significant(profile.operators_ms)} ms, in {profile.runs} profiled runs. A whole run without the profiler: "
        f"{whole} ms of CPU time.",
        f"Arithmetic floor: {floor} ms, of matmuls by weights {numbers.significant(profile.matmuls_floor_ms)} ms, at the best rates "
        f"measured here, in billion MACs per s: {rates}.",
        f"Distance: matmuls by weights {profile.matmuls_over_floor:.2f}× their floor, a whole run {profile.whole_over_floor:.2f}× "
        "the floor.",
    )
