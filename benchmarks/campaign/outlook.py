"""Estimate what fits into a campaign's minutes before it starts, from earlier training speeds or a probe of a few steps."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compress.errors import CompressError
from compress.machine import memory_bytes, usable_cores
from compress.pipeline import Plan, plan_all
from compress.pipeline.estimate import Work, estimate
from compress.pipeline.lengths import mean_length

from .state import hardware
from .steps import PRETRAIN, done_before, planned_request, wanted_recipes

_GB = 1e9
_LATE = "; LIKELY OUT OF TIME"


@dataclass(frozen=True)
class Row:
    """A recipe on a task: the training work that no row above it includes. `problem`: why it will fail."""

    name: str
    work: tuple[Work, ...] = ()
    problem: str | None = None

    @property
    def memory(self) -> int:
        """Bytes of the stage that needs the most memory."""
        return max((work.memory.total for work in self.work), default=0)


@dataclass(frozen=True)
class Pretraining:
    """The cost of pre-training the teacher: seconds `spent` in all, of the `probe`, and per `step`; its `share` of the time that remains
    after the probe; whether it is likely to be `late`."""

    spent: float = 0.0
    share: float = 0.0
    probe: float = 0.0
    step: float = 0.0
    late: bool = False


class Rates:
    """Training speed of a stage in FLOP/s: from the store, or from one probe on a model like the teacher."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments, self._probed = arguments, 0.0

    def seconds(self, plan: Plan, work: tuple[Work, ...]) -> float:
        """Return the seconds of training alone. Stages whose steps depend on the text count as zero."""
        known = estimate([plan], self._arguments.out / "runs").rates
        return sum(each.flops / (known.get(each.key) or self._probe(plan)) for each in work)

    def _probe(self, plan: Plan) -> float:
        from compress.pipeline.training.throughput import probe

        if not self._probed:
            length = round(max(1.0, mean_length(plan)))
            how: dict[str, Any] = {"kind": plan.task.spec.kind, "length": length, "threads": usable_cores()}
            self._probed = probe(plan.teacher.config, precision=plan.precision, **how)
        return self._probed


def outlook(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield lines: the hardware, the pre-training, each recipe and task in order, and what is unlikely to fit."""
    machine, rates, room = hardware(), Rates(arguments), _room()
    where = machine["gpu"] or f"{machine['machine']['cpu']}, no GPU: a rehearsal"
    yield f"campaign: {arguments.minutes:g} minutes on {where}, {room / _GB:.0f} GB of memory"
    left, first = 60 * arguments.minutes, Pretraining()
    if arguments.no_pretrain:
        yield f"teacher: {arguments.teacher}, taken as it is (--no-pretrain)"
    else:
        line, first = _pretraining(arguments, rates, left, room)
        left -= first.spent
        yield line
    yield "recipes, in this order; minutes of training alone, export, int8 and scores come on top:"
    rows, taken, late = list(_rows(arguments)), [], first.late
    for place, (row, plan) in enumerate(rows):
        limit = left if place == len(rows) - 1 else left / 2
        seconds = 0.0 if plan is None else rates.seconds(plan, row.work)
        yield f"  {row.name}: {_said(row, seconds, limit, room)}"
        left, late = left - min(seconds, limit), late or seconds > limit
        taken.append(seconds)
    if late:
        yield f"--minutes {math.ceil(minutes_needed(taken, first))} would do for these trainings, with what is not counted on top"
    yield f"bundles: an int8 one of each run that ended; about {max(left, 0) / 60:.0f} minutes are left for what is not counted"


def minutes_needed(seconds: Sequence[float], first: Pretraining) -> float:
    """Return the fewest minutes in which all recipes finish. Pre-training takes its share of the time after its probe, at least one step;
    each recipe but the last takes at most half of the remaining time."""
    *others, needed = [*seconds] or [0.0]
    for each in reversed(others):
        needed = max(2 * each, each + needed)
    of_steps = first.step / first.share if first.share else 0.0
    return (first.probe + max(needed / (1 - first.share), of_steps)) / 60


def _room() -> int:
    """Return the bytes of memory of the GPU, or of the machine if it has none."""
    import torch

    return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else memory_bytes()


def _pretraining(arguments: argparse.Namespace, rates: Rates, left: float, room: int) -> tuple[str, Pretraining]:
    """Return the line about pre-training, and its cost."""
    (plan,) = plan_all(planned_request(arguments, PRETRAIN, arguments.task[0]))
    left_to_do = estimate([plan], arguments.out / "runs").work
    work = next((each for each in left_to_do if each.label.startswith("pretrain ")), None)
    if work is None or "pretrain" in done_before(arguments):
        return f"pre-training of {arguments.teacher}: nothing left to train", Pretraining()
    spec: Any = next(node.spec for node in plan.nodes if node.key == work.key)
    if not work.steps:
        return (
            f"pre-training: {arguments.probe_steps} steps tell how many fit into {arguments.share:.0%} of the time",
            Pretraining(spent=left * arguments.share, share=arguments.share),
        )
    step = rates.seconds(plan, (work,)) / work.steps
    probe, budget = arguments.probe_steps * step, left * arguments.share
    steps = max(1, min(work.steps, int((left - probe) * arguments.share / step)))
    line = (
        f"pre-training of {arguments.teacher}: a probe of {arguments.probe_steps} steps ({probe / 60:.1f} min), then about {steps:,} "
        f"steps of {spec.batch_size} sequences ({steps * step / 60:.1f} of {budget / 60:.1f} min), {work.memory.total / _GB:.1f} GB"
    )
    late = probe + step > left
    spent = min(left, probe + steps * step)
    line += _LATE if late else ""
    return line + _too_large(work.memory.total, room), Pretraining(spent, arguments.share, probe, step, late)


def _rows(arguments: argparse.Namespace) -> Iterator[tuple[Row, Plan | None]]:
    seen: set[str] = set()
    done = done_before(arguments)
    for recipe, task, name in wanted_recipes(arguments):
        try:
            (plan,) = plan_all(planned_request(arguments, recipe, task))
            left_to_do = estimate([plan], arguments.out / "runs").work
        except CompressError as error:
            yield Row(f"{recipe} {name}", problem=str(error)), None
            continue
        ready = f"{recipe} {name}" in done
        yield Row(f"{recipe} {name}", () if ready else tuple(work for work in left_to_do if work.key not in seen)), plan
        seen |= {work.key for work in left_to_do}


def _said(row: Row, seconds: float, limit: float, room: int) -> str:
    if row.problem is not None:
        return f"WILL FAIL: {row.problem}"
    if not row.work:
        return "nothing left to train"
    steps = sum(work.steps or 0 for work in row.work)
    line = f"{steps:,} steps, {seconds / 60:.1f} of at most {limit / 60:.1f} min, {row.memory / _GB:.1f} GB"
    if any(work.steps is None for work in row.work):
        line += "; one stage is as long as the text"
    line += _LATE if seconds > limit else ""
    return line + _too_large(row.memory, room)


def _too_large(needed: int, room: int) -> str:
    """Return a warning if the memory is too small: training then uses smaller micro-batches on a GPU and takes longer."""
    return "; LIKELY OUT OF MEMORY, then in smaller micro-batches" if needed > room else ""
