"""How much each matmul of a searched model changes the answers when it alone is int8, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...results import ModelResult, Result
from ..grouping.groups import Task, title
from ..grouping.labels import name_of
from ..pictures.drawing import PAPER, SOFT, channel, heading, label_width, mark
from ..pictures.plot import tooltip
from ..pictures.plot_points import COLOURS
from ..text import numbers
from ..text.cells import Column, Line, Table, text_cells
from ..text.words import KIND_WORDS

WIDTH, STEP = 420, 16  # pixels
_LEAST = 1e-8  # lower end of the logarithmic axis
_KINDS = {"static": "int8, calibrated range", "dynamic": "int8, range of each run", "fp32": "fp32 fallback"}


def searched_models(tasks: Sequence[Task]) -> list[tuple[Result, ModelResult]]:
    """Return the models whose mix of int8 and fp32 was searched."""
    return [
        (result, model)
        for task in tasks
        for result in task.results
        for model in result.models
        if model.info.get("divergence")
    ]


def describe(tasks: Sequence[Task]) -> str:
    """Describe the pictures in words, as their alternative text."""
    sentences = []
    for result, model in searched_models(tasks):
        rows = sorted(_matmul_rows(model), key=lambda row: -row["divergence"])[:3]
        listed = "; ".join(f"{row['matmul']} {numbers.significant(row['divergence'])} ({row['kind']})" for row in rows)
        sentences.append(f"{_chart_title(result, model)}. Divergence of the logits by matmul, the largest: {listed}.")
    return " ".join(sentences)


def charts(tasks: Sequence[Task]) -> list[Any]:
    return [_chart(result, model) for result, model in searched_models(tasks)]


def table(result: Result, model: ModelResult, caption: str) -> Table:
    """Return every matmul of a searched model, the most divergent first; empty for old results, which have no points."""
    columns = (
        Column("Matmul", numeric=False),
        Column("In the mix", numeric=False),
        Column("Divergence", _measure(result)),
        Column("Lost", "points"),
        Column("Saved", "ms"),
    )
    rows = sorted(_matmul_rows(model), key=lambda row: -row["divergence"]) if "drop_alone" in model.info else []
    lines = [
        Line(
            text_cells(
                row["matmul"],
                row["kind"],
                f"{row['divergence']:.1e}",
                numbers.points(row["drop"]),
                numbers.significant(row["saved"]),
            )
        )
        for row in rows
    ]
    return Table(caption, columns, tuple(lines))


def _chart(result: Result, model: ModelResult) -> dict[str, Any]:
    rows = _matmul_rows(model)
    labels = [row["matmul"] for row in rows]
    kinds = list(_KINDS.values())
    axis = {
        "title": None,
        "labelLimit": 0,
        "labelOverlap": False,
        "minExtent": label_width(labels),
        "ticks": False,
        "domain": False,
    }
    legend = {"title": None, "orient": "bottom", "columns": 2, "columnPadding": 60, "labelLimit": 0}
    colours = {"domain": kinds, "range": [COLOURS[0], COLOURS[1], PAPER]}
    encoding = {
        "x": channel(
            "divergence:Q", title=_measure(result), scale={"type": "log"}, axis={"tickCount": 6, "format": ".0e"}
        ),
        "y": channel("matmul:N", sort=labels, axis=axis, scale={"domain": labels}),
        "fill": channel("kind:N", scale=colours, legend=legend),
        "description": channel("tip:N"),
    }
    points = mark("point", rows, encoding, size=50, stroke=SOFT, opacity=1)
    subtitle = ["Each matmul as int8 alone, on texts of the tuning split; further right: more of the answers is lost."]
    caption = heading(_chart_title(result, model), subtitle, WIDTH)
    return {**points, "width": WIDTH, "height": STEP * len(rows), "title": caption}


def _chart_title(result: Result, model: ModelResult) -> str:
    return f"{result.recipe.get('title') or name_of(result)}, {title(model)}, {result.task.marked_title}, seed {result.seed}"


def _measure(result: Result) -> str:
    return KIND_WORDS[result.task.kind].divergence.format("fp32")


def _matmul_rows(model: ModelResult) -> list[dict[str, Any]]:
    """Return rows in the order of the graph, each for the int8 format that a matmul has in the mix, or had before the fallback (not
    recorded in old results: static)."""
    fallbacks = set(model.info["fp32_fallbacks"])
    rows = []
    for matmul, divergences in model.info["divergence"].items():
        int8_format = model.info.get("int8_formats_tried", model.info["int8_formats"]).get(matmul, "static")
        kind = _KINDS["fp32" if matmul in fallbacks else int8_format]
        name = matmul.removesuffix("/MatMul")
        row = {"matmul": name, "divergence": max(divergences[int8_format], _LEAST), "kind": kind}
        if "drop_alone" in model.info:
            row |= {"drop": model.info["drop_alone"][matmul][int8_format], "saved": model.info["saved_ms"][matmul]}
        tip = {"Matmul": name, "Divergence": f"{row['divergence']:.1e}", "In the mix": kind}
        rows.append(row | {"tip": tooltip(tip)})
    return rows
