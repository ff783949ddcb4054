"""What pruning left, as a picture: the heads and neurons of each layer, and the score on the tuning split at each budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...results import Result
from ...results.pruning import PruningRecord
from ..grouping.groups import Task
from ..grouping.labels import name_of
from ..pictures.drawing import PAPER, SOFT, channel, charts_beside, heading, layer_charts, mark
from ..pictures.plot import tooltip
from ..pictures.plot_points import COLOURS
from ..text import numbers

CELL, NEURONS, CURVE = 20, 240, (480, 220)  # pixels: a head, the bar of all neurons, width and height of a curve
_BESIDE: dict[str, Any] = {"align": "left", "dx": 6, "fontSize": 11, "color": SOFT}  # a number at the end of a row
_KEPT, _TAKEN = "stays", "taken out"
_SCORE = "Tuning score, points"
_UNITS = {"flops": "Share of the layers' FLOPs", "latency": "Share of the time", "size_mb": "File, MB"}
_UNITS["widths"] = _UNITS["flops"]


def is_drawn(result: Result) -> bool:
    """Whether the result has pruning with the original numbers of heads and neurons, which old results lack."""
    return bool(result.pruning) and None not in _whole_widths(result)


def pruned_results(tasks: Sequence[Task]) -> list[Result]:
    return [result for task in tasks for result in task.results if is_drawn(result)]


def describe(tasks: Sequence[Task]) -> str:
    """Describe the pictures in words, as their alternative text."""
    return " ".join(part for result in pruned_results(tasks) for part in _describe_layers(result))


def charts(tasks: Sequence[Task]) -> list[Any]:
    """Return for each run what the last pruning stage left, and a curve for each stage with several budgets."""
    pictures = []
    for result in pruned_results(tasks):
        pictures.append(_shape(result))
        pictures += [_curve(result, record) for record in result.pruning if len(record.points) > 1]
    return pictures


def _describe_layers(result: Result) -> Iterator[str]:
    heads, neurons = _whole_widths(result)
    layers = "; ".join(
        f"layer {number} {len(kept) or 'none'} and {f'{width:,}' if width else 'none'}"
        for number, kept, width in _layers(result)
    )
    yield f"{_run_title(result)}. Heads and neurons that stay, of {heads} and {neurons:,} in each layer: {layers}."
    for record in result.pruning:
        if len(record.points) > 1:
            unit = _UNITS[record.budget]
            points = (f"{numbers.points(point.final)} at {point.reached:.3g}" for point in record.points)
            yield (
                f"Stage {record.stage}, tuning score by {unit[0].lower()}{unit[1:]}: {'; '.join(points)}; "
                f"whole {numbers.points(record.whole)}."
            )


def _whole_widths(result: Result) -> tuple[Any, Any]:
    """Return heads and neurons of each layer before the first stage that prunes."""
    return result.pruning[0].layer_heads, result.pruning[0].layer_neurons


def _layers(result: Result) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Yield, after the last stage that prunes: each layer's number, its heads, and how many neurons."""
    last = result.pruning[-1].points[-1]
    for number, (heads, neurons) in enumerate(zip(last.heads, last.neurons, strict=True), 1):
        yield number, heads, neurons


def _shape(result: Result) -> Any:
    width = max(CURVE[0], CELL * _whole_widths(result)[0] + NEURONS)
    below = ["Attention heads and feed-forward neurons that stay after the last stage that prunes."]
    title = heading(_run_title(result), below, width)
    return charts_beside(_heads(result), _neurons(result), spacing=30, title=title)


def _heads(result: Result) -> dict[str, Any]:
    whole, _ = _whole_widths(result)
    width = CELL * whole
    cells = [
        {"layer": number, "head": head, "state": state, "tip": tooltip({f"Layer {number}, head {head}": state})}
        for number, heads, _ in _layers(result)
        for head in range(whole)
        for state in (_KEPT if head in heads else _TAKEN,)
    ]
    counts = [{"layer": number, "label": str(len(heads) or "none")} for number, heads, _ in _layers(result)]
    plain = {"ticks": False, "domain": False, "labelOverlap": False}
    y = channel("layer:O", title="Layer", axis=plain)
    colours = {"domain": [_KEPT, _TAKEN], "range": [COLOURS[0], PAPER]}
    encoding = {
        "x": channel("head:O", title="Head, from 0", axis={"labelAngle": 0, **plain}),
        "y": y,
        "fill": channel("state:N", scale=colours, legend={"title": None, "orient": "bottom"}),
        "description": channel("tip:N"),
    }
    square = {"shape": "square", "size": (CELL - 6) ** 2, "stroke": SOFT, "strokeWidth": 0.8, "opacity": 1}
    squares = mark("point", cells, encoding, **square)
    texts = mark("text", counts, {"x": {"value": width}, "y": y, "text": channel("label:N")}, **_BESIDE)
    return layer_charts(squares, texts, width=width, height={"step": CELL})


def _neurons(result: Result) -> dict[str, Any]:
    _, whole = _whole_widths(result)
    rows = [
        {"layer": number, "kept": neurons, "whole": whole, "label": _label(neurons, whole)}
        for number, _, neurons in _layers(result)
    ]
    y = channel("layer:O", title=None, axis={"labels": False, "ticks": False, "domain": False})
    how = {
        "title": "Neurons",
        "scale": {"domain": [0, whole], "nice": False},
        "axis": {"values": [0, whole], "format": ",d"},
    }
    bar = {"height": CELL - 6, "aria": False}
    bars = mark("bar", rows, {"x": channel("kept:Q", **how), "y": y}, color=COLOURS[0], **bar)
    frames = mark("bar", rows, {"x": channel("whole:Q", **how), "y": y}, fill=None, stroke=SOFT, strokeWidth=0.8, **bar)
    texts = mark("text", rows, {"x": {"value": NEURONS}, "y": y, "text": channel("label:N")}, **_BESIDE)
    return layer_charts(bars, frames, texts, width=NEURONS, height={"step": CELL})


def _label(neurons: int, whole: int) -> str:
    return f"{neurons:,} ({numbers.percent(neurons / whole)})" if neurons else "none"


def _curve(result: Result, record: PruningRecord) -> dict[str, Any]:
    rows = _points(record)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    colours = {"domain": kinds, "range": [COLOURS[1], COLOURS[0]][-len(kinds) :]}
    base = {
        "x": channel("x:Q", title=_UNITS[record.budget], scale={"zero": False, "padding": 16}),
        "color": channel("kind:N", scale=colours, legend={"title": None, "orient": "bottom", "symbolOpacity": 1}),
    }
    y, low = (channel(f"{name}:Q", title=_SCORE, scale={"zero": False}) for name in ("y", "low"))
    layers = (
        mark("rule", [{"y": record.whole}], {"y": y}, strokeDash=[2, 3], color=SOFT, aria=False),
        mark("rule", rows, {**base, "y": low, "y2": {"field": "high"}}, strokeWidth=2, opacity=0.65, aria=False),
        mark("line", rows, {**base, "y": y}, strokeWidth=1.5, aria=False),
        mark("point", rows, {**base, "y": y, "description": channel("tip:N")}, size=50, opacity=1, filled=True),
    )
    below = [f"Stage {record.stage}. Bars: 95% interval of the difference to the whole model, the dotted line."]
    width, height = CURVE
    return layer_charts(*layers, width=width, height=height, title=heading(_run_title(result), below, width))


def _points(record: PruningRecord) -> list[dict[str, Any]]:
    """Return the points of each budget; the interval is at the score after the repair, if there is one."""
    rows = []
    for point in record.points:
        for kind, score in (("pruned", point.pruned), ("repaired", point.repaired)):
            if score is None:
                continue
            tip = {f"Tuning score, {kind}": numbers.points(score), _UNITS[record.budget]: f"{point.reached:.3g}"}
            row = {"x": point.reached, "y": score, "kind": kind, "tip": tooltip(tip)}
            if point.delta is not None and kind == ("pruned" if point.repaired is None else "repaired"):
                row |= {"low": record.whole + point.delta.low, "high": record.whole + point.delta.high}
            rows.append(row)
    return rows


def _run_title(result: Result) -> str:
    return f"{result.recipe.get('title') or name_of(result)}, {result.task.marked_title}, seed {result.seed}"
