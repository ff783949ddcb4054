"""Which layers of a teacher a student's layers are most similar to: heat maps of CKA and of the divergence of attention, and their
values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...results import Result
from ...results.similarity import LayerSimilarity
from ..grouping.groups import Task
from ..pictures.drawing import channel, charts_below, charts_beside, heading, label_width, layer_charts, mark, wrap_text
from ..pictures.plot_points import WIDTH
from ..text.cells import NOTHING, Column, Line, Table, text_cells
from ..text.words import join_words

Rows = Sequence[Sequence[float | None]]
Colour = tuple[int, int, int]

READING = (
    "CKA compares two layers by their states of the same tokens, whatever their widths: 1 where the states of one layer are those of the "
    "other, rotated, shifted and scaled; 0 where they have nothing linear in common (Kornblith et al. 2019, arXiv:1905.00414).",
    "The divergence of attention is Jensen and Shannon's, in bits, of the mean over heads, averaged over the tokens that attend: 0 where "
    "two layers attend to the same tokens, 1 where to none in common. Both are of up to 256 texts of the tuning split.",
)

_CELL = (31, 24)  # pixels, width and height
_SPACING = 30  # pixels between two maps
# Of cells, from far to near, and of their numbers: not colours that a page replaces, so that numbers stand out in dark mode too.
_STATES: tuple[Colour, Colour] = ((0xE6, 0xF0, 0xF8), (0x00, 0x5A, 0x93))
_ATTENTION: tuple[Colour, Colour] = ((0xFC, 0xEE, 0xE0), (0xA3, 0x47, 0x00))
_FIGURES: tuple[Colour, Colour] = ((0x00, 0x00, 0x00), (0xFE, 0xFE, 0xFE))


@dataclass(frozen=True)
class Section:
    """`words`: alternative text of the pictures, empty if there is none."""

    words: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]


def is_drawn(result: Result) -> bool:
    return result.similarity is not None and bool(result.similarity.states)


def section(tasks: Sequence[Task]) -> Section | None:
    """Return the section, for one seed of each recipe; None if no result has layer similarity."""
    known = [*_known_similarities(tasks)]
    if not known:
        return None
    return Section(
        " ".join(_describe_map(title, similarity) for title, similarity in known if similarity.states),
        tuple(sentence for title, similarity in known for sentence in _sentences(title, similarity)),
        tuple(table for title, similarity in known for table in _tables(title, similarity)),
    )


def charts(tasks: Sequence[Task]) -> list[Any]:
    """Return for each student a map of states, and of attention if it was read: side by side if they fit."""
    return [_student(title, similarity) for title, similarity in _known_similarities(tasks) if similarity.states]


def _known_similarities(tasks: Sequence[Task]) -> Iterator[tuple[str, LayerSimilarity]]:
    """Yield for each recipe the similarity of its first seed with maps; old results without similarity may be among the runs."""
    for task in tasks:
        for variant in task.variants:
            run = next((run for run in variant.runs if is_drawn(run)), variant.first)
            if run.similarity is not None:
                seed = f", seed {run.seed}" if len(variant.runs) > 1 else ""
                yield f"{variant.label}, {task.first.task.marked_title}{seed}", run.similarity


def _sentences(title: str, similarity: LayerSimilarity) -> Iterator[str]:
    if similarity.states:
        best = [max(range(len(row)), key=row.__getitem__) for row in similarity.states]
        figures = [f"{row[place]:.2f}" for row, place in zip(similarity.states, best, strict=True)]
        yield f"{title}: by CKA, {_nearest(similarity.model, range(len(best)), best)} ({join_words(figures)}). Layer 0 is the embeddings."
    if rows := {number: figures for number, row in enumerate(similarity.attention, 1) if (figures := _figures(row))}:
        least = [min(figures, key=figures.__getitem__) for figures in rows.values()]
        bits = [f"{row[place]:.2f}" for row, place in zip(rows.values(), least, strict=True)]
        yield f"{title}: by attention, {_nearest(similarity.model, [*rows], least)} ({join_words(bits)} bits apart)."
    for problem in similarity.left_out:
        yield f"{title}: not compared: {problem}."


def _nearest(model: str, student: Sequence[int], teacher: Sequence[int]) -> str:
    mine, theirs = (join_words([*map(str, layers)]) for layers in (student, teacher))
    if len(student) > 3 and student[-1] - student[0] == len(student) - 1:
        mine = f"{student[0]} to {student[-1]}"
    if len(student) == 1:
        return f"{model} layer {mine} is nearest to teacher layer {theirs}"
    return f"{model} layers {mine} are nearest to teacher layers {theirs}"


def _figures(row: Sequence[float | None]) -> dict[int, float]:
    """Return the values by teacher layer, from 1; empty if there is no attention to compare."""
    return {place: value for place, value in enumerate(row, 1) if value is not None}


def _describe_map(title: str, similarity: LayerSimilarity) -> str:
    size = f"{len(similarity.states)} by {len(similarity.states[0])}"
    attention = " The same of attention, in bits." if similarity.attention else ""
    return f"{title}. CKA of {similarity.model} layers with teacher layers, {size}, as in the table below.{attention}"


def _tables(title: str, similarity: LayerSimilarity) -> Iterator[Table]:
    if similarity.states:
        yield _table(f"CKA of states, {title}", similarity.model, similarity.states, first=0)
    if similarity.attention:
        yield _table(f"Divergence of attention in bits, {title}", similarity.model, similarity.attention, first=1)


def _table(caption: str, model: str, rows: Rows, *, first: int) -> Table:
    columns = (
        Column(f"{_name(model)} layer", numeric=False),
        *(Column(f"Teacher {first + place}") for place in range(len(rows[0]))),
    )
    lines = (
        Line(text_cells(str(first + number), *(NOTHING if value is None else f"{value:.4f}" for value in row)))
        for number, row in enumerate(rows)
    )
    return Table(caption, columns, tuple(lines))


def _name(model: str) -> str:
    """Return e.g. `Student`."""
    return f"{model[0].upper()}{model[1:]}"


def _student(title: str, similarity: LayerSimilarity) -> Any:
    maps = [_chart("CKA of states", similarity.model, similarity.states, first=0, colours=_STATES, ends=(0.0, 1.0))]
    if similarity.attention:
        most = max((value for row in similarity.attention for value in _figures(row).values()), default=1.0) or 1.0
        caption = "Divergence of attention, bits"
        maps.append(
            _chart(caption, similarity.model, similarity.attention, first=1, colours=_ATTENTION, ends=(most, 0.0))
        )
    widths = [len(rows[0]) * _CELL[0] for rows in (similarity.states, similarity.attention) if rows]
    subtitle = f"{similarity.tokens:,} tokens of {similarity.texts:,} texts of the tuning split. Darker: nearer. Layer 0: embeddings."
    if sum(widths) > WIDTH:
        return charts_below(*maps, spacing=_SPACING, title=heading(title, [subtitle], WIDTH))
    names = label_width([f"{_name(similarity.model)} {len(similarity.states)}"])
    whole = sum(widths) + len(widths) * names + _SPACING * (len(widths) - 1)
    return charts_beside(*maps, spacing=_SPACING, title=heading(title, [subtitle], min(whole, WIDTH)))


def _chart(
    caption: str,
    model: str,
    rows: Rows,
    *,
    first: int,
    colours: tuple[Colour, Colour],
    ends: tuple[float, float],
) -> Any:
    """`ends`: the values that have the first and the second of `colours`."""
    own = [f"{_name(model)} {first + number}" for number in range(len(rows))]
    cells = [
        {"own": layer, "teacher": first + place, "label": f"{value:.2f}"} | _paint(value, colours, ends)
        for layer, row in zip(own, rows, strict=True)
        for place, value in enumerate(row)
        if value is not None
    ]
    wide, high = _CELL
    plain = {"ticks": False, "domain": False, "labelOverlap": False, "labelAngle": 0}
    across = {"domain": [first + place for place in range(len(rows[0]))]}
    names = {**plain, "labelLimit": 0, "labelPadding": 4, "minExtent": label_width(own)}
    places = {
        "x": channel("teacher:O", title="Teacher layer", scale=across, axis=plain),
        "y": channel("own:O", title=None, scale={"domain": own}, axis=names),
    }
    fill, figure = (channel(f"{name}:N", scale=None, legend=None) for name in ("fill", "figure"))
    layers = (
        mark("rect", cells, {**places, "color": fill}, aria=False),
        mark("text", cells, {**places, "text": channel("label:N"), "color": figure}, fontSize=11, aria=False),
    )
    words = wrap_text(caption, wide * len(rows[0]) + label_width(own))
    title = {"text": words, "anchor": "start", "frame": "bounds", "fontSize": 12, "offset": 8}
    return layer_charts(*layers, width=wide * len(rows[0]), height=high * len(rows), title=title)


def _paint(value: float, colours: tuple[Colour, Colour], ends: tuple[float, float]) -> dict[str, str]:
    """Return the colours of a cell and of its number, the one with more contrast."""
    share = min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))
    red, green, blue = (round(far + share * (near - far)) for far, near in zip(*colours, strict=True))
    fill = red, green, blue
    figure = max(_FIGURES, key=lambda colour: contrast(fill, colour))
    return {"fill": _hex(fill), "figure": _hex(figure)}


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Colour) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
