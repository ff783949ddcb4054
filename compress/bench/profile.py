"""A model's time by kind of operator, compared with the time that its arithmetic alone would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import CompressError
from .floor import floor_ms
from .operators import FP32, INT8, Operator

if TYPE_CHECKING:
    from .spec import Candidate, Progress, Shape

__all__ = ["Kind", "Profile", "profile", "summary"]


@dataclass(frozen=True)
class Kind:
    """All operators of one type and group. `milliseconds`: their total; `share`: of `Profile.operators_ms`."""

    op: str
    group: str
    count: int
    milliseconds: float
    share: float
    macs: int


@dataclass(frozen=True)
class Profile:
    """One model at one shape on one thread, run `runs` times with the profiler and as often without; times in milliseconds.

    `kinds`: sums of each node's least time over the runs, the longest first; `groups`: group -> share; `operators_ms`: the sum over all
    kinds. `whole_ms`: the least CPU time of a run without the profiler. `macs`: precision -> multiply-accumulates of all matmuls;
    `rates`: precision -> the most per second that ONNX Runtime reaches on this machine (`floor.measured_rates`). `floor_ms`: the time of
    all `macs` at those rates; `matmuls_floor_ms`: the same for matmuls with weights only, which took `matmuls_ms`. `whole_over_floor`,
    `matmuls_over_floor`: the ratios of the measured times to these two.
    """

    batch: int
    length: int
    runs: int
    kinds: tuple[Kind, ...]
    groups: dict[str, float]
    operators_ms: float
    matmuls_ms: float
    whole_ms: float
    macs: dict[str, int]
    rates: dict[str, float]
    floor_ms: float
    matmuls_floor_ms: float
    matmuls_over_floor: float
    whole_over_floor: float

    @property
    def gemm_share(self) -> float:
        """Share of the matmuls with weights, int8 and fp32."""
        return self.groups.get(INT8, 0.0) + self.groups.get(FP32, 0.0)


def profile(
    candidates: Sequence[Candidate], shapes: Sequence[Shape], on_progress: Progress | None = None
) -> dict[str, tuple[Profile, ...]]:
    """Return name -> a profile per (batch, length), for the candidates that ONNX Runtime runs, one after the other.

    Each runs in its own process, which also measures the rates. CompressError: ONNX Runtime runs none of the candidates, there are no
    shapes, or a model cannot be profiled; CheckFailed: a process died or hung.
    """
    from .process import Child

    chosen = [candidate for candidate in candidates if candidate.runtime == "onnx"]
    if not chosen or not shapes:
        raise CompressError("--profile: expected an ONNX file run by ONNX Runtime and a shape; found none")
    by_candidate = {}
    for number, candidate in enumerate(chosen):
        if on_progress:
            on_progress(f"profile of {candidate.name}", number, len(chosen))
        with Child(candidate, threads=1) as child:
            child.load()
            rates, profiles = child.rates(), []
            for batch, length in shapes:
                runs, operators = child.operators([length] * batch)
                whole = min(child.run([length] * batch).cpu for _ in range(runs))
                profiles.append(summary((batch, length), runs, operators, whole, rates))
            by_candidate[candidate.name] = tuple(profiles)
    if on_progress:
        on_progress("profiles", len(chosen), len(chosen))
    return by_candidate


def summary(
    shape: Shape, runs: int, operators: Sequence[Operator], whole_ms: float, rates: dict[str, float]
) -> Profile:
    """Return the `Profile` of `operators`, from `runs` profiled runs, and `whole_ms`, of a run without the profiler.

    CompressError: no operator is a matmul with weights, or their times are all 0.
    """
    total = sum(operator.milliseconds for operator in operators)
    macs = _macs(operators)
    matmuls = [operator for operator in operators if operator.group in (INT8, FP32)]
    if not total or not matmuls:
        raise CompressError(f"--profile: expected a model with matmuls, found {len(operators)} operators")
    kinds = _kinds(operators, total)
    groups: dict[str, float] = {}
    for kind in kinds:
        groups[kind.group] = groups.get(kind.group, 0.0) + kind.share
    matmuls_ms = sum(operator.milliseconds for operator in matmuls)
    least, least_matmuls = floor_ms(macs, rates), floor_ms(_macs(matmuls), rates)
    return Profile(
        batch=shape[0],
        length=shape[1],
        runs=runs,
        kinds=kinds,
        groups=groups,
        operators_ms=total,
        matmuls_ms=matmuls_ms,
        whole_ms=whole_ms,
        macs=macs,
        rates=rates,
        floor_ms=least,
        matmuls_floor_ms=least_matmuls,
        matmuls_over_floor=matmuls_ms / least_matmuls,
        whole_over_floor=whole_ms / least,
    )


def _macs(operators: Sequence[Operator]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for operator in operators:
        for precision, count in operator.macs.items():
            counts[precision] = counts.get(precision, 0) + count
    return counts


def _kinds(operators: Sequence[Operator], total: float) -> tuple[Kind, ...]:
    together: dict[tuple[str, str], list[Operator]] = {}
    for operator in operators:
        together.setdefault((operator.op, operator.group), []).append(operator)
    kinds = []
    for (op, group), members in together.items():
        milliseconds = sum(member.milliseconds for member in members)
        macs = sum(sum(member.macs.values()) for member in members)
        kinds.append(Kind(op, group, len(members), milliseconds, milliseconds / total, macs))
    return tuple(sorted(kinds, key=lambda kind: -kind.milliseconds))
