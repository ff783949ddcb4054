"""Vega-Lite documents -> SVG, as a separate file and as part of a page."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

VEGALITE = "6.4"
FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"
# Of text, lesser text, lines and background. style.css replaces these colours by the page's own.
INK, SOFT, LINE, PAPER = "#1f2328", "#6e7781", "#d8dee4", "#ffffff"
_LARGE, _SMALL = 15, 11.5  # pixels, of titles and of text below them
_GAP = 12  # pixels between pictures, which also have margins
CHARACTER = 7.2  # pixels, of the widest usual font at 11.5 pixels: fonts differ from the one used for layout
_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
_MARK = re.compile(
    r'(<path aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="(?:point|line mark)"[^>]*)/>'
)
DRAWN: dict[str, str] = {}  # Vega-Lite document -> its SVG, for those drawn ahead
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')  # of a whole picture, in pixels
_UNSEEN = re.compile(r'<path class="(?:back|fore)ground"[^>]* d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_GROUP = re.compile(r"<g [^>]*>")
_WORDS = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')  # of a group: the chart's own label describes it
_IDLE = re.compile(
    r' (?:class="[^"]*"|pointer-events="none"|aria-hidden="true"|opacity="1"|[xy]2="0"|stroke-width="1"|transform="translate\(0,0\)")'
)
_PLACES = re.compile(r' (?:transform|d|[xy]2?|width|height|viewBox)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
_ALIKE = re.compile(r"<g>((?:<line [^>]*/>){2,}|(?:<text [^>]*>[^<]*</text>){2,})</g>")
_TAG = re.compile(r"<(?:line|text) [^>]*>")
_INHERITED = re.compile(r' ((?:stroke(?:-[a-z]+)?|fill(?:-opacity)?|font-[a-z]+|text-anchor)="[^"]*")')


def svg(charts: Sequence[dict[str, Any]], *, columns: int = 2) -> str:
    """Return the SVG of one or several charts, in columns if there are more than two."""
    drawn = [_draw_once(document_of(chart)) for chart in charts]
    return drawn[0] if len(drawn) == 1 else _sheet(drawn, columns if len(drawn) > 2 else 1)


def _sheet(drawn: Sequence[str], columns: int) -> str:
    """Combine pictures into one, beside and below each other, each unchanged."""
    sizes = list(map(_size, drawn))
    lefts = _start_offsets([max(width for width, _ in sizes[column::columns]) for column in range(columns)])
    rows = range(0, len(sizes), columns)
    tops = _start_offsets([max(height for _, height in sizes[row : row + columns]) for row in rows])
    parts = [
        f'<g transform="translate({lefts[place % columns]},{tops[place // columns]})">{_svg_content(each)}</g>'
        for place, each in enumerate(drawn)
    ]
    width, height = lefts[-1] - _GAP, tops[-1] - _GAP
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    ground = f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    return _SIZE.sub(size, drawn[0][: drawn[0].index(">") + 1], count=1) + ground + "".join(parts) + "</svg>"


def _size(drawn: str) -> tuple[int, int]:
    """Width and height in pixels, rounded up."""
    match = _SIZE.search(drawn)
    if match is None:
        raise RuntimeError("a picture has no size")
    width, height = (math.ceil(float(length)) for length in match.groups())
    return width, height


def _start_offsets(lengths: Sequence[int]) -> list[int]:
    """Return the start of each, and that of one after the last."""
    return list(accumulate((length + _GAP for length in lengths), initial=0))


def _svg_content(drawn: str) -> str:
    return drawn[drawn.index(">") + 1 : drawn.rindex("</svg>")]


@lru_cache(maxsize=512)
def _draw_once(document: str) -> str:
    """Draw once, for a separate file and the page."""
    return shrink_svg(DRAWN.get(document) or picture(document))


def picture(document: str) -> str:
    """Return the SVG of a Vega-Lite document, as Vega writes it."""
    import vl_convert

    # From text vl_convert reads numbers less exactly than Python does.
    return vl_convert.vegalite_to_svg(json.loads(document), vl_version=VEGALITE)


def shrink_svg(picture: str) -> str:
    """Return the same picture without attributes for Vega's own scripts, with the font set once, common attributes of lines or texts moved
    to their group, and lengths rounded to a hundredth of a pixel."""
    picture = _GROUP.sub(lambda group: _WORDS.sub("", group[0]), _UNSEEN.sub("", picture))
    family = f' font-family="{FONT}"'
    picture = _IDLE.sub("", picture).replace(family, "").replace("<svg", f"<svg{family}", 1)
    picture = _PLACES.sub(lambda places: _LONG.sub(_round_number, places[0]), picture)
    return _ALIKE.sub(_hoist_attributes, picture)


def _round_number(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _hoist_attributes(group: re.Match[str]) -> str:
    """Return a group of only lines or texts, with their common inheritable attributes moved to the group."""
    each = [set(_INHERITED.findall(tag)) for tag in _TAG.findall(group[1])]
    common = set.intersection(*each)
    own = _INHERITED.sub(lambda said: "" if said[1] in common else said[0], group[1])
    return f"<g{''.join(sorted(f' {said}' for said in common))}>{own}</g>"


def inline(picture: str) -> str:
    """Return a picture for a page: each mark shows its label on hover, without a script."""
    return _MARK.sub(r"\1><title>\2</title></path>", picture)


def document_of(chart: dict[str, Any]) -> str:
    """Return the Vega-Lite document of a chart, as text."""
    return json.dumps(specification(chart))


def specification(chart: dict[str, Any]) -> dict[str, Any]:
    """Return a Vega-Lite document of a chart."""
    return {"config": _config(), **chart}


def mark(kind: str, rows: Sequence[Any], encoding: Mapping[str, Any], **how: Any) -> dict[str, Any]:
    """Return a chart of one kind of mark; `how`: its Vega-Lite properties."""
    return {"data": {"values": list(rows)}, "mark": {"type": kind, **how}, "encoding": dict(encoding)}


def channel(field: str, **how: Any) -> dict[str, Any]:
    """Return a channel for a field such as `step:Q`; `how`: its Vega-Lite properties."""
    name, kind = field.split(":")
    return {"field": name, "type": _TYPES[kind], **how}


def layer_charts(*charts: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """Layer charts; data that all share are written once."""
    parts, data = list(charts), charts[0].get("data")
    if len(parts) > 1 and all(part.get("data") == data for part in parts):
        parts = [{name: value for name, value in part.items() if name != "data"} for part in parts]
        properties["data"] = data
    return {"layer": parts, **properties}


def charts_beside(*charts: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"hconcat": [*charts], **properties}


def charts_below(*charts: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"vconcat": [*charts], **properties}


def heading(title: str, subtitle: Sequence[str], width: float) -> dict[str, Any]:
    """Return a title and a subtitle, wrapped to `width` pixels."""
    lines = [part for line in subtitle for part in wrap_text(line, width)]
    return {"text": wrap_text(title, width * _SMALL / _LARGE), "subtitle": lines, "anchor": "start", "offset": 14}


def wrap_text(text: str, width: float) -> list[str]:
    """Wrap small text to `width` pixels."""
    return textwrap.wrap(text, int(width / CHARACTER))


def label_width(labels: Sequence[str]) -> float:
    """Return the pixels that the longest label of an axis needs."""
    return CHARACTER * max(map(len, labels), default=0)


def _config() -> dict[str, Any]:
    axis = {"labelColor": SOFT, "titleColor": INK, "domainColor": LINE, "tickColor": LINE, "gridColor": LINE}
    axis |= {"gridOpacity": 0.6, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"}
    axis |= {"titlePadding": 10, "labelFlush": False, "labelOverlap": "greedy", "labelSeparation": 12}
    title = {"color": INK, "subtitleColor": SOFT, "fontSize": _LARGE, "subtitleFontSize": _SMALL, "fontWeight": 600}
    return {
        "font": FONT,
        "background": PAPER,
        "padding": 14,
        "view": {"stroke": None},
        "axis": axis,
        "legend": {"labelColor": INK, "labelFontSize": _SMALL},
        "title": title | {"subtitlePadding": 5, "subtitleLineHeight": 15},
    }
