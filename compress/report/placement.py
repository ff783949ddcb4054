"""Where labels go: beside their points, off each other, off points, bars and lines. All in pixels, y downward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Literal

Align = Literal["left", "center", "right"]
CHARACTER = 6.2  # mean advance of a sans-serif at 11.5 px, rounded up
LINE = 14.0
GAP = 5.0
NEAR = 12.0  # a label this close to another point could be read as that one's


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> Box:
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def overlap(self, other: Box) -> float:
        """Shared area, square pixels."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width > 0 and height > 0 else 0.0


@dataclass(frozen=True)
class Spot:
    """A point to label. `area` in square pixels, as Vega sizes points."""

    x: float
    y: float
    area: float
    text: str

    @property
    def radius(self) -> float:
        return sqrt(self.area / pi)

    @property
    def box(self) -> Box:
        r = self.radius + 1
        return Box(self.x - r, self.y - r, self.x + r, self.y + r)


@dataclass(frozen=True)
class Label:
    x: float
    y: float
    align: Align
    box: Box

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the text's edge that is nearest to (x, y): where a leader line ends."""
        return min(max(x, self.box.left), self.box.right), min(max(y, self.box.top), self.box.bottom)


def place(spots: Sequence[Spot], obstacles: Sequence[Box], width: float, height: float) -> list[Label]:
    """One label per spot, in order. Greedy: the candidate that covers least, nearest first among equals.

    Spots in the densest places choose first; `obstacles` are error bars and lines.
    """
    order = sorted(range(len(spots)), key=lambda index: (-_crowd(spots[index], spots), index))
    placed: dict[int, Label] = {}
    for index in order:
        taken = [label.box for label in placed.values()]
        points = [spot.box for spot in spots]
        others = [spot.box.grown(NEAR) for number, spot in enumerate(spots) if number != index]
        candidates = _candidates(spots[index])
        costs = [
            _cost(label.box, taken, points, obstacles, width, height) + sum(map(label.box.overlap, others)) + 3 * rank
            for rank, label in enumerate(candidates)
        ]
        placed[index] = candidates[costs.index(min(costs))]
    return [placed[index] for index in range(len(spots))]


def _crowd(spot: Spot, spots: Sequence[Spot]) -> int:
    return sum(abs(other.x - spot.x) < 160 and abs(other.y - spot.y) < 40 for other in spots)


def _cost(
    box: Box, labels: list[Box], points: list[Box], obstacles: Sequence[Box], width: float, height: float
) -> float:
    """Text on text is worst, then text on points, outside the frame, and on lines."""
    outside = (box.right - box.left) * (box.bottom - box.top) - box.overlap(Box(0, 0, width, height))
    return (
        20 * sum(map(box.overlap, labels))
        + 8 * sum(map(box.overlap, points))
        + 20 * outside
        + 4 * sum(map(box.overlap, obstacles))
    )


def _candidates(spot: Spot) -> list[Label]:
    """Right, left, above, below, then the corners; then the same farther away."""
    found: list[Label] = []
    for ring in range(4):
        far = spot.radius + GAP + ring * LINE
        beside = spot.radius + GAP
        up, down = spot.y - far - LINE / 2, spot.y + far + LINE / 2
        if ring == 0:
            found += [_label(spot, spot.x + beside, spot.y, "left"), _label(spot, spot.x - beside, spot.y, "right")]
        found += [_label(spot, spot.x, up, "center"), _label(spot, spot.x, down, "center")]
        found += [_label(spot, spot.x + 4, up, "left"), _label(spot, spot.x + 4, down, "left")]
        found += [_label(spot, spot.x - 4, up, "right"), _label(spot, spot.x - 4, down, "right")]
    return found


def _label(spot: Spot, x: float, y: float, align: Align) -> Label:
    width = len(spot.text) * CHARACTER
    left = {"left": x, "center": x - width / 2, "right": x - width}[align]
    return Label(x, y, align, Box(left, y - LINE / 2, left + width, y + LINE / 2))
