"""What each recipe took: core-hours of the teacher's fine-tuning, of stages on plain text, and of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..results import Result, StageRecord
from . import numbers
from .runs import Task, Variant
from .tables import NOTHING, Column, Line, Table, text_cells

READING = (
    "What a recipe took is the wall-clock time of its stages times their threads, the mean over seeds, whether they were built in this "
    "run or came from the store; where a GPU trained, GPU-hours. Stages that recipes share count in each. Scoring and measuring "
    "are left out.",
)
CORES = "core-hours"
_HOUR = 3600  # seconds
_LITTLE = 5e-4  # hours


class Part(Enum):
    """What a stage is for, in the order of the columns."""

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
    """A line for each recipe; None where no stages are on record."""
    costs = {variant.label: _parts(variant) for variant in task.variants if variant.first.stages}
    if not costs:
        return None
    unit = unit_of(cost for parts in costs.values() for cost in parts.values())
    shown = [part for part in Part if any(part in parts for parts in costs.values())]
    columns = (
        Column("Recipe", numeric=False),
        *(Column(part.value, unit) for part in shown),
        Column("Without the teacher's training", unit),
    )
    lines = tuple(_line(label, parts, shown, unit) for label, parts in costs.items())
    return Table(f"{task.first.task.title}: what each recipe took", columns, lines)


def compression(task: Task, label: str) -> Cost:
    """Of the variant with this label, without its teacher's training; the mean over seeds."""
    variant = next(variant for variant in task.variants if variant.label == label)
    return _whole(_parts(variant))


def unit_of(costs: Iterable[Cost]) -> str:
    """Of a column; empty where each cell has its own, since a GPU took part."""
    return "" if any(cost.gpus for cost in costs) else CORES


def text(cost: Cost, unit: str) -> str:
    """`0.42`; without a common unit `0.031 GPU-h + 0.12 core-h`, less what is next to none."""
    if unit:
        return numbers.significant(cost.cores, 2)
    parts = [(cost.gpus, "GPU-h"), (cost.cores, "core-h")]
    return " + ".join(f"{numbers.significant(hours, 2)} {unit}" for hours, unit in parts if hours > _LITTLE) or "0"


def _line(label: str, parts: dict[Part, Cost], shown: list[Part], unit: str) -> Line:
    cells = [text(parts[part], unit) if part in parts else NOTHING for part in shown]
    return Line(text_cells(label, *cells, text(_whole(parts), unit)))


def _whole(parts: dict[Part, Cost]) -> Cost:
    return sum((cost for part, cost in parts.items() if part is not Part.TEACHER), Cost())


def _parts(variant: Variant) -> dict[Part, Cost]:
    """The means over seeds."""
    sums: dict[Part, Cost] = {}
    for run in variant.runs:
        for stage in run.stages:
            part = part_of(stage)
            sums[part] = sums.get(part, Cost()) + cost_of(stage, run)
    return {part: cost / len(variant.runs) for part, cost in sums.items()}


def part_of(stage: StageRecord) -> Part:
    """By the stage's kind, `distill student`: its name, and the model that it makes."""
    kind, _, made = stage.kind.partition(" ")
    if kind in ("export", "quantize"):
        return Part.EXPORT
    if kind == "pretrain" or (kind in ("finetune", "choose", "adopt") and made.startswith("teacher")):
        return Part.TEACHER
    return Part.PLAIN_TEXT if kind in ("tokenize", "masked_lm", "general") else Part.TASK


def cost_of(stage: StageRecord, run: Result) -> Cost:
    """Stages that do not say how many threads they had have the run's."""
    hours = stage.seconds / _HOUR
    if stage.info.get("device") == "cuda":
        return Cost(gpus=hours * (stage.info.get("processes") or 1))
    return Cost(cores=hours * (stage.info.get("threads") or run.settings.get("threads") or 1))
