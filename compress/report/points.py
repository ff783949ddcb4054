"""What the plot shows, and where: points, ranges, the Pareto front, label positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10

from ..results import Delta
from . import numbers
from .placement import Box, Label, Spot, place
from .runs import Row, Shape, Task
from .tables import MAIN_SHAPES

WIDTH, HEIGHT = 620, 340
AREA = (50.0, 620.0)  # of the smallest conceivable and of the largest file, square pixels
BASELINE_COLOUR = "#768390"
# Okabe & Ito's colours, the ones that stand out on white and on near-black: safe for colour-blind readers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")


@dataclass(frozen=True)
class Point:
    """One model in the plot. `x` in ms (MB where nothing was timed), scores in points."""

    label: str
    x: float
    y: float
    low: float
    high: float
    file_bytes: int
    colour: str
    eager: bool
    tip: dict[str, str]


@dataclass(frozen=True)
class Frame:
    """The visible ranges, and how values become pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    logarithmic: bool

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        low, high = self.x
        share = log10(x / low) / log10(high / low) if self.logarithmic else (x - low) / (high - low)
        return share * WIDTH, (self.y[1] - y) / (self.y[1] - self.y[0]) * HEIGHT

    def value(self, left: float, top: float) -> tuple[float, float]:
        low, high = self.x
        share = left / WIDTH
        x = low * (high / low) ** share if self.logarithmic else low + share * (high - low)
        return x, self.y[1] - top / HEIGHT * (self.y[1] - self.y[0])


def shape_of(task: Task) -> Shape | None:
    """What the horizontal axis shows: one text of 32 tokens, if that was timed; None where nothing was."""
    timed = [shape for shape in (*MAIN_SHAPES, *task.shapes) if task.baseline.latency(shape)]
    return timed[0] if timed else None


def points_of(task: Task) -> list[Point]:
    """Every model on ONNX Runtime, and the teacher on PyTorch for orientation."""
    shape = shape_of(task)
    recipes = list(dict.fromkeys(row.recipe for row in task.rows if row.recipe))
    rows = [row for row in task.rows if not row.eager or row.model.name == task.baseline.model.name]
    found = (_point(row, shape, recipes) for row in rows)
    return [point for point in found if point is not None]


def _point(row: Row, shape: Shape | None, recipes: list[str]) -> Point | None:
    latency = row.latency(shape) if shape else None
    if (shape and latency is None) or (shape is None and row.eager):
        return None
    x = latency.p50 if latency else row.model.file_bytes / 1e6
    delta = row.delta or Delta(points=0, low=0, high=0, mcnemar_p=None)
    size = numbers.megabytes(row.model.file_bytes) + " MB"
    tip = {"Model": row.label, "Score": numbers.points(row.headline), "File": size}
    if latency:
        tip |= {"p50": f"{numbers.milliseconds(x)} ms", "Speed-up": numbers.times(latency.speedup)}
    if row.delta:
        tip["95% interval"] = f"{numbers.signed(delta.low)} to {numbers.signed(delta.high)} against the teacher"
    colour = COLOURS[recipes.index(row.recipe) % len(COLOURS)] if row.recipe else BASELINE_COLOUR
    y, label = row.headline, row.label if row.eager else f"{row.label}, {size}"
    low, high = y - delta.points + delta.low, y - delta.points + delta.high
    return Point(label, x, y, low, high, row.model.file_bytes, colour, row.eager, tip)


def pareto(points: Iterable[Point]) -> list[Point]:
    """The points that no other one beats in both speed and score, from fast to slow."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not point.eager and (not front or point.y > front[-1].y):
            front.append(point)
    return front


def frame_of(points: Sequence[Point]) -> Frame:
    """Ranges with room for labels; a logarithmic x where values span more than fourfold."""
    xs = [point.x for point in points]
    logarithmic = min(xs) > 0 and max(xs) / min(xs) > 4
    x = (min(xs) / 1.35, max(xs) * 1.8) if logarithmic else (0.0, max(xs) * 1.25 or 1.0)
    low, high = min(point.low for point in points), max(point.high for point in points)
    room = max(0.12 * (high - low), 0.5)
    return Frame(x, (low - room, min(high + room, 100 + room)), logarithmic)


def area(point: Point, largest: int) -> float:
    return AREA[0] + (AREA[1] - AREA[0]) * point.file_bytes / largest


def labels_of(points: Sequence[Point], frame: Frame) -> list[Label]:
    """Label positions in pixels; error bars, the front and the teacher's line are kept free where possible."""
    largest = max(point.file_bytes for point in points)
    spots = [Spot(*frame.pixel(point.x, point.y), area(point, largest), point.label) for point in points]
    lines = [_span(frame, point.x, point.low, point.x, point.high) for point in points]
    front = pareto(points)
    for one, two in pairwise(front):
        lines += [_span(frame, one.x, one.y, two.x, one.y), _span(frame, two.x, one.y, two.x, two.y)]
    lines.append(_span(frame, frame.x[0], points[0].y, frame.x[1], points[0].y))
    return place(spots, lines, WIDTH, HEIGHT)


def _span(frame: Frame, x1: float, y1: float, x2: float, y2: float) -> Box:
    (left, top), (right, bottom) = frame.pixel(x1, y1), frame.pixel(x2, y2)
    return Box(min(left, right) - 2, min(top, bottom) - 2, max(left, right) + 2, max(top, bottom) + 2)


def describe(task: Task) -> str:
    """The plot in words, for those who do not see it."""
    shape = shape_of(task)
    axis = f"p50 latency at {numbers.shape(*shape)}" if shape else "file size"
    listed = "; ".join(
        f"{point.label}: {numbers.points(point.y)} points, {numbers.significant(point.x)} {'ms' if shape else 'MB'}"
        for point in points_of(task)
    )
    return f"{task.first.task.title}: score against {axis}. {listed}."
