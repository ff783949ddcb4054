"""The cost of each recipe: core-hours of the teacher's fine-tuning, of stages on plain text, and of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from ...results import Result, StageRecord
from ..grouping.groups import Task, Variant
from ..text import numbers
from ..text.cells import NOTHING, Column, Line, Table, text_cells

READING = (
    "What a recipe took is the wall-clock time of its stages times their threads, the mean over seeds, whether they were built in this "
    "run or came from the store; where a GPU trained, GPU-hours. Stages that recipes share count in each; those that tasks share count "
    "once over tasks. Scoring and measuring are left out.",
)
CORES = "core-hours"
_HOUR = 3600  # seconds
_LITTLE = 5e-4  # hours


class Part(Enum):
    """The purpose of a stage, in the order of the columns."""

    TEACHER = "Teacher's training"
    PLAIN_TEXT = "On plain text"
    TASK = "On the task"
    EXPORT = "Export, int8"


@dataclass(frozen=True)
class Cost:
    """Hours of cores and of GPUs."""

    cores: float = 0.0
    gpus: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cores + other.cores, self.gpus + other.gpus)

    def __bool__(self) -> bool:
        return bool(self.cores or self.gpus)

    def __truediv__(self, number: int) -> Cost:
        return Cost(self.cores / number, self.gpus / number)


def costs_table(task: Task) -> Table | None:
    """Return a line for each recipe whose runs all have recorded stages; None if there is none."""
    costs = {variant.label: _costs_by_part([variant]) for variant in task.variants if _is_recorded(variant)}
    if not costs:
        return None
    unit = unit_of(cost for parts in costs.values() for cost in parts.values())
    shown = [part for part in Part if any(part in parts for parts in costs.values())]
    columns = (
        Column("Recipe", numeric=False),
        *(Column(part.value, unit) for part in shown),
        Column("Without the teacher's training", unit),
    )
    lines = tuple(_cost_line(label, parts, shown, unit) for label, parts in costs.items())
    return Table(f"{task.first.task.marked_title}: what each recipe took", columns, lines)


def compression(variants: Sequence[Variant]) -> Cost | None:
    """Return the cost of one recipe on one task or several, without the training of teachers; the mean over seeds, with stages that tasks
    share counted once. None if a run has no recorded stages."""
    return _total_cost(_costs_by_part(variants)) if all(map(_is_recorded, variants)) else None


def unit_of(costs: Iterable[Cost]) -> str:
    """Return the unit of a column; empty if each cell has its own, because a GPU took part."""
    return "" if any(cost.gpus for cost in costs) else CORES


def format_cost(cost: Cost, unit: str) -> str:
    """Format e.g. `0.42`; without a common unit `0.031 GPU-h + 0.12 core-h`, without negligible parts."""
    if unit:
        return numbers.significant(cost.cores, 2)
    parts = [(cost.gpus, "GPU-h"), (cost.cores, "core-h")]
    return " + ".join(f"{numbers.significant(hours, 2)} {unit}" for hours, unit in parts if hours > _LITTLE) or "0"


def _cost_line(label: str, parts: dict[Part, Cost], shown: list[Part], unit: str) -> Line:
    cells = [format_cost(parts[part], unit) if part in parts else NOTHING for part in shown]
    return Line(text_cells(label, *cells, format_cost(_total_cost(parts), unit)))


def _total_cost(parts: dict[Part, Cost]) -> Cost:
    return sum((cost for part, cost in parts.items() if part is not Part.TEACHER), Cost())


def _is_recorded(variant: Variant) -> bool:
    return all(run.stages for run in variant.runs)


def _costs_by_part(variants: Sequence[Variant]) -> dict[Part, Cost]:
    """Return the sums over tasks of a recipe's means over seeds. Of a kind of stage that tasks share, each seed's stages count once,
    in however many tasks they are."""
    uses = Counter(
        identity
        for variant in variants
        for identity in {(stage.kind, stage.key) for run in variant.runs for stage in run.stages}
    )
    shared = {kind for (kind, _), tasks in uses.items() if tasks > 1}
    parts: dict[Part, Cost] = {}
    for costs in (
        *(_mean_costs(variant.runs, without=shared) for variant in variants),
        _mean_costs_of_shared(variants, shared),
    ):
        for kind, cost in costs.items():
            parts[part_of(kind)] = parts.get(part_of(kind), Cost()) + cost
    return parts


def _mean_costs(runs: Sequence[Result], without: Collection[str]) -> dict[str, Cost]:
    """Return kind of stage -> mean over one task's runs, `without` some kinds."""
    sums: dict[str, Cost] = {}
    for run in runs:
        for stage in run.stages:
            if stage.kind not in without:
                sums[stage.kind] = sums.get(stage.kind, Cost()) + cost_of(stage, run)
    return {kind: cost / len(runs) for kind, cost in sums.items()}


def _mean_costs_of_shared(variants: Sequence[Variant], kinds: Collection[str]) -> dict[str, Cost]:
    """Return kind of stage -> mean over the seeds of all tasks, for `kinds`."""
    stages = {
        (stage.kind, run.seed, stage.key): cost_of(stage, run)
        for variant in variants
        for run in variant.runs
        for stage in run.stages
        if stage.kind in kinds
    }
    sums: dict[str, Cost] = {}
    seeds: dict[str, set[int]] = {}
    for (kind, seed, _), cost in stages.items():
        sums[kind] = sums.get(kind, Cost()) + cost
        seeds.setdefault(kind, set()).add(seed)
    return {kind: cost / len(seeds[kind]) for kind, cost in sums.items()}


def part_of(kind: str) -> Part:
    """Return the part by the kind of a `StageRecord`, e.g. `distill student`: the stage's name, and the model that it makes."""
    name, _, model = kind.partition(" ")
    if name in ("export", "quantize"):
        return Part.EXPORT
    if name in ("grow", "pretrain") or (name in ("finetune", "choose", "adopt") and model.startswith("teacher")):
        return Part.TEACHER
    return Part.PLAIN_TEXT if name in ("tokenize", "masked_lm", "general") else Part.TASK


def cost_of(stage: StageRecord, run: Result) -> Cost:
    """Return a stage's cost; without recorded threads it has the run's."""
    hours = stage.seconds / _HOUR
    if stage.info.get("device") == "cuda":
        return Cost(gpus=hours * (stage.info.get("processes") or 1))
    return Cost(cores=hours * (stage.info.get("threads") or run.settings.get("threads") or 1))
