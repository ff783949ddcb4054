"""The contents of the plot: points, ranges, the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ...results.fidelity import Delta
from ...results.timing import headline
from ..grouping.groups import MAIN_SHAPES, Row, Shape, Task
from ..grouping.steady_times import steady_times
from ..text import numbers

WIDTH, HEIGHT = 620, 340
AREA = (50.0, 620.0)  # of the smallest possible and of the largest file, square pixels
BASELINE_COLOUR = "#768390"
# Okabe & Ito's colours that stand out on white and on near-black: safe for colour-blind readers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down")  # of the models of one recipe


@dataclass(frozen=True)
class Point:
    """One model in the plot. `x` in ms (MB if nothing was timed), scores in points."""

    label: str
    x: float
    y: float
    low: float
    high: float
    file_bytes: int
    colour: str
    mark: str
    eager: bool
    tip: dict[str, str]


@dataclass(frozen=True)
class Frame:
    """The visible ranges."""

    x: tuple[float, float]
    y: tuple[float, float]
    logarithmic: bool


def shape_of(task: Task) -> Shape | None:
    """Return the shape of the horizontal axis: among those in which most models were timed, one text of 32 tokens first, preferring shapes
    that no run doubts; None if nothing was timed."""
    counts = {shape: sum(row.latency(shape) is not None for row in task.rows) for shape in (*MAIN_SHAPES, *task.shapes)}
    timed = sorted((shape for shape, count in counts.items() if count), key=lambda shape: -counts[shape])
    doubted = {shape for row in task.rows for shape in task.in_doubt(row)}
    return next((shape for shape in timed if shape not in doubted), timed[0] if timed else None)


def left_out(task: Task) -> list[str]:
    """Return the models that a chart by time cannot show: they were not timed in its shape."""
    shape = shape_of(task)
    return [row.label for row in task.rows if shape and not row.eager and row.latency(shape) is None]


def points_of(task: Task, *, by_size: bool = False) -> list[Point]:
    """Return every model on ONNX Runtime; by time, if anything was timed, the teacher on PyTorch too, for orientation."""
    shape = None if by_size else shape_of(task)
    rows = [row for row in task.rows if not row.eager or row.model.name == task.baseline.model.name]
    shown = [row for row in rows if (row.latency(shape) if shape else not row.eager)]
    models = {recipe: [row for row in shown if row.recipe == recipe] for recipe in ["", *_recipes(task)]}
    return [_point(row, shape, models[row.recipe].index(row), task) for row in shown]


def colour_of(row: Row, task: Task) -> str:
    """Return the colour of the row's recipe, the same in every picture of the task."""
    return COLOURS[_recipes(task).index(row.recipe) % len(COLOURS)] if row.recipe else BASELINE_COLOUR


def legend_of(task: Task) -> list[tuple[str, str]]:
    """Return (recipes, their colour): more recipes than colours share them."""
    recipes = _recipes(task)
    return [
        (", ".join(recipes[place :: len(COLOURS)]), COLOURS[place]) for place in range(min(len(recipes), len(COLOURS)))
    ]


def _recipes(task: Task) -> list[str]:
    return list(dict.fromkeys(row.recipe for row in task.rows if row.recipe))


def _point(row: Row, shape: Shape | None, number: int, task: Task) -> Point:
    """`number`: of the model within its recipe."""
    cpu = task.cpu_time
    latency = row.latency(shape) if shape else None
    x = median(steady_times(task, row, shape)) if shape and latency else row.model.file_bytes / 1e6
    delta = row.delta or Delta(points=0, low=0, high=0, mcnemar_p=None)
    size = numbers.megabytes(row.model.file_bytes) + " MB"
    tip = {"Model": row.label, "Score": numbers.points(row.headline), "File": size}
    if latency:
        tip |= {
            "CPU time" if cpu else "p50": f"{numbers.significant(x)} ms",
            "Speed-up": numbers.times(headline(latency, cpu=cpu)[1]),
        }
    if row.delta:
        tip["95% interval"] = (
            f"{numbers.signed(delta.low)} to {numbers.signed(delta.high)} against {task.teacher_of(row.recipe)}"
        )
    y, label = row.headline, row.label if row.eager else f"{row.label}, {size}"
    low, high = y - delta.points + delta.low, y - delta.points + delta.high
    mark = "cross" if row.eager else SHAPES[number % len(SHAPES)]
    return Point(label, x, y, low, high, row.model.file_bytes, colour_of(row, task), mark, row.eager, tip)


def pareto(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other one beats in both score and time, or size: from fast to slow, or small to large."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not point.eager and (not front or point.y > front[-1].y):
            front.append(point)
    return front


def frame_of(points: Sequence[Point]) -> Frame:
    """Return ranges with a margin around the points; a logarithmic x if values span more than fourfold."""
    xs = [point.x for point in points]
    logarithmic = min(xs) > 0 and max(xs) / min(xs) > 4
    x = (min(xs) / 1.35, max(xs) * 1.8) if logarithmic else (0.0, max(xs) * 1.25 or 1.0)
    low, high = min(point.low for point in points), max(point.high for point in points)
    room = max(0.12 * (high - low), 0.5)
    return Frame(x, (low - room, min(high + room, 100 + room)), logarithmic)


def area(point: Point, largest: int) -> float:
    return AREA[0] + (AREA[1] - AREA[0]) * point.file_bytes / largest


def describe(task: Task, *, by_size: bool = False) -> str:
    """Describe the plot in words, as its alternative text."""
    shape = None if by_size else shape_of(task)
    clock = "CPU time" if task.cpu_time else "p50 latency"
    axis = f"{clock} at {numbers.shape(*shape)}" if shape else "file size"
    listed = "; ".join(
        f"{point.label}: {numbers.points(point.y)} points, {numbers.significant(point.x)} {'ms' if shape else 'MB'}"
        for point in points_of(task, by_size=by_size)
    )
    missing = "" if by_size else "".join(f" {label} was not timed so." for label in left_out(task))
    return f"{task.first.task.marked_title}: score against {axis}. {listed}.{missing}"
