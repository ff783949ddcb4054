"""How often models are right at each level of confidence: reliability diagrams (Guo et al. 2017, arXiv:1706.04599, §3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...results.fidelity import ReliabilityBin
from ..grouping.groups import Row, Task
from ..pictures.drawing import SOFT, channel, heading, layer_charts, mark, wrap_text
from ..pictures.plot import tooltip
from ..pictures.plot_points import COLOURS, HEIGHT, SHAPES, WIDTH, colour_of
from ..text import numbers

_LEAST = 10  # decisions: a share of fewer is too uncertain to be drawn


def is_drawn(task: Task) -> bool:
    return bool(_drawn_rows(task))


def describe(tasks: Sequence[Task]) -> str:
    """Describe the pictures in words, as their alternative text."""
    return " ".join(_describe_bins(task, row) for task in tasks for row in _drawn_rows(task))


def charts(tasks: Sequence[Task]) -> list[Any]:
    """Return a chart for each task whose results have the bins."""
    return [_chart(task) for task in tasks if is_drawn(task)]


def pool_bins(row: Row) -> list[ReliabilityBin]:
    """Return the bins of a model over all its seeds, each decision counted once, the least confident first. A model that seeds
    share, such as their teacher, has the same bins in each, and counts once."""
    bins: dict[int, list[ReliabilityBin]] = {}
    for reliability in dict.fromkeys(model.reliability for model in row.models):
        for each in reliability:
            bins.setdefault(each.number, []).append(each)
    return [_sum(bins[number]) for number in sorted(bins)]


def _sum(bins: Sequence[ReliabilityBin]) -> ReliabilityBin:
    examples = sum(each.examples for each in bins)
    sure, right = (sum(each.examples * getattr(each, name) for each in bins) for name in ("confidence", "right"))
    update = {"examples": examples, "confidence": sure / examples, "right": right / examples}
    return bins[0].model_copy(update=update)


def _drawn_rows(task: Task) -> list[Row]:
    """Return the baselines, and the last model of each recipe, which is shipped: at most as many as there are colours."""
    last = {row.recipe: row for row in task.rows if not row.eager and not task.is_baseline(row)}
    rows = [*task.baselines, *list(last.values())[: len(COLOURS)]]
    return [row for row in rows if all(model.reliability for model in row.models) and _drawn_bins(row)]


def _drawn_bins(row: Row) -> list[ReliabilityBin]:
    return [each for each in pool_bins(row) if each.examples >= _LEAST]


def _describe_bins(task: Task, row: Row) -> str:
    bins = "; ".join(
        f"{numbers.percent(each.right)} at {numbers.percent(each.confidence)}, of {each.examples:,}"
        for each in _drawn_bins(row)
    )
    return f"{task.first.task.marked_title}, {row.label}. Right decisions by confidence: {bins}."


def _chart(task: Task) -> dict[str, Any]:
    rows = _drawn_rows(task)
    labels = ["\n".join(wrap_text(row.label, WIDTH)) for row in rows]
    colours = [colour_of(row, task) for row in rows]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(rows))]
    values = [
        _value(label, colour, each)
        for label, colour, row in zip(labels, colours, rows, strict=True)
        for each in _drawn_bins(row)
    ]
    low = min(value[name] for value in values for name in ("x", "y"))
    domain = [min(int(low * 10), 9) / 10, 1]
    axes = {"scale": {"domain": domain, "nice": False}, "axis": {"format": ".0%", "tickCount": 5}}
    places = {
        "x": channel("x:Q", title="Mean confidence", **axes),
        "y": channel("y:Q", title="Right decisions", **axes),
    }
    legend = {
        "title": None,
        "orient": "bottom",
        "columns": 1,
        "labelExpr": "split(datum.label, '\\n')",
        "labelLimit": 0,
    }
    look = {
        "fill": channel("label:N", scale={"domain": labels, "range": colours}, legend=legend),
        "shape": channel("label:N", scale={"domain": labels, "range": shapes}, legend=legend),
        "description": channel("tip:N"),
    }
    # Models may share a colour: the label gives each a line of its own.
    colour = {"color": channel("colour:N", scale=None, legend=None), "detail": channel("label:N")}
    layers = (
        mark("line", [{"x": end, "y": end} for end in domain], places, strokeDash=[2, 3], color=SOFT, aria=False),
        mark("line", values, {**places, **colour}, strokeWidth=1.2, opacity=0.65, aria=False),
        mark("point", values, {**places, **look}, size=55, opacity=0.92, strokeWidth=0),
    )
    several = any(len(row.models) > 1 for row in rows)
    below = [
        f"Below the dotted line: surer than right. Bins of {_LEAST} decisions or more"
        f"{', over all seeds together' if several else ''}."
    ]
    return layer_charts(*layers, width=WIDTH, height=HEIGHT, title=heading(task.first.task.marked_title, below, WIDTH))


def _value(label: str, colour: str, each: ReliabilityBin) -> dict[str, Any]:
    tip = {
        "Model": label.replace("\n", " "),
        "Confidence": numbers.percent(each.confidence),
        "Right": numbers.percent(each.right),
        "Decisions": f"{each.examples:,}",
    }
    return {"label": label, "colour": colour, "x": each.confidence, "y": each.right, "tip": tooltip(tip)}
