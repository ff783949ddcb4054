"""Bounding boxes of an SVG's text, as wide as in the widest usual font, so that no browser draws it wider."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from itertools import combinations

_WIDTH = 0.6  # of a character, in font sizes: running text in DejaVu Sans, the widest of the usual sans-serif fonts
_INHERITED = ("font-size", "text-anchor")
_STEP = re.compile(r"(translate|rotate)\(([-\d.e]+)(?:,([-\d.e]+))?\)")


@dataclass(frozen=True)
class Box:
    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.5 and down > 0.5


def boxes(svg: str) -> tuple[Box, list[Box]]:
    """Return the box of the picture, and that of every text in it."""
    root = ElementTree.fromstring(svg)
    whole = Box("", 0, 0, float(root.attrib["width"]), float(root.attrib["height"]))
    labels: list[Box] = []
    _walk(root, 0.0, 0.0, False, {}, labels)
    return whole, labels


def faults(svg: str) -> list[str]:
    """Return the labels that are cut by the edge or an ellipsis, that overlap, or whose `aria-label` has `undefined`, NaN or
    null."""
    whole, labels = boxes(svg)
    assert labels
    outside = [
        f"cut: {box}"
        for box in labels
        if box.left < 0 or box.top < 0 or box.right > whole.right or box.bottom > whole.bottom
    ]
    shortened = [f"shortened: {box.text}" for box in labels if "…" in box.text]
    overlapping = [f"{a} on {b}" for a, b in combinations(labels, 2) if a.overlaps(b)]
    unsaid = re.findall(r'aria-label="[^"]*(?:undefined|NaN|null)[^"]*"', svg)
    return [*outside, *shortened, *overlapping, *unsaid]


def _walk(
    element: ElementTree.Element, x: float, y: float, turned: bool, inherited: dict[str, str], labels: list[Box]
) -> None:
    inherited = {**inherited, **{name: element.attrib[name] for name in _INHERITED if name in element.attrib}}
    for kind, first, second in _STEP.findall(element.attrib.get("transform", "")):
        if kind == "rotate":
            assert float(first) in (-90, 270)
            turned = True
        elif turned:  # rotated text moves up where it would move right
            x, y = x + float(second or 0), y - float(first)
        else:
            x, y = x + float(first), y + float(second or 0)
    if element.tag.endswith("}text"):
        labels += _lines(element, x, y, turned, inherited)
    for child in element:
        if not element.tag.endswith("}text"):
            _walk(child, x, y, turned, inherited, labels)


def _lines(element: ElementTree.Element, x: float, y: float, turned: bool, inherited: dict[str, str]) -> list[Box]:
    if float(element.attrib.get("opacity", 1)) == 0 or element.attrib.get("display") == "none":
        return []
    size = float(inherited["font-size"].removesuffix("px"))
    spans = [child for child in element if child.tag.endswith("tspan")]
    texts = [(child.text or "", float(child.attrib.get("dy", 0))) for child in spans] or [(element.text or "", 0.0)]
    lines, down = [], 0.0
    for text, step in texts:
        down += step
        width = len(text) * size * _WIDTH
        start = {"start": 0.0, "middle": -width / 2, "end": -width}[inherited.get("text-anchor", "start")]
        if turned:
            lines.append(Box(text, x + down - size * 0.8, y - start - width, x + down + size * 0.2, y - start))
        else:
            lines.append(Box(text, x + start, y + down - size * 0.8, x + start + width, y + down + size * 0.2))
    return [box for box in lines if box.text]
