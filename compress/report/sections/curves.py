"""The course of each training of a run, from the run's log: terms of its loss and the score on the tuning split, by step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...results import LOG
from ..grouping.groups import Task, Variant
from ..grouping.predictions import own_file
from ..pictures.drawing import CHARACTER, channel, charts_below, charts_beside, heading, mark
from ..pictures.plot_points import COLOURS
from ..text import numbers

WIDTH, HEIGHT = 300, 150  # pixels, of one of the two charts of a training
_MOST = 120  # points of a line
_SPAN = 20  # a loss that falls by a larger factor has a logarithmic axis
Line = list[tuple[int, float]]  # step, value


@dataclass
class Training:
    """One stage of one seed. `tuning` in points of the task's headline score."""

    model: str
    seed: int
    losses: dict[str, Line] = field(default_factory=dict)
    tuning: Line = field(default_factory=list)


@dataclass(frozen=True)
class Curves:
    """The trainings of one recipe on one task, over its seeds."""

    title: str
    trainings: tuple[Training, ...]


def curves_of(task: Task, folders: Sequence[Path]) -> Iterator[Curves]:
    """Yield the curves of every recipe whose runs' logs are in `folders`, as `find_predictions` takes them."""
    for variant in task.variants:
        trainings = tuple(_trainings(variant, folders))
        if trainings:
            yield Curves(f"Training curves: {variant.label} on {task.first.task.marked_title}", trainings)


def describe(curves: Curves) -> str:
    """Describe the curves in words, as their alternative text."""
    return f"{curves.title}. {' '.join(map(_describe_curves, curves.trainings))}"


def chart(curves: Curves) -> dict[str, Any]:
    """Return a row for each stage: its losses, and its score if it has one; a line for each seed."""
    models = dict.fromkeys(training.model for training in curves.trainings)
    rows = [_chart_row(name, [each for each in curves.trainings if each.model == name]) for name in models]
    return charts_below(*rows, spacing=40, resolve={"scale": dict.fromkeys(("x", "y", "color"), "independent")})


def _trainings(variant: Variant, folders: Sequence[Path]) -> Iterator[Training]:
    for run in variant.runs:
        file = own_file(run, folders, LOG)
        if file is not None:
            yield from _read(file, run.seed)


def _read(file: Path, seed: int) -> list[Training]:
    """Return the trainings of a log, thinned. Lines that are cut or have other content are skipped."""
    trainings: dict[str, Training] = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            model, step = str(entry["model"]), int(entry["step"])
            losses = {str(name): float(value) for name, value in entry["losses"].items()}
            score = math.nan if entry.get("tuning") is None else float(entry["tuning"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
        training = trainings.setdefault(model, Training(model, seed))
        for name, value in losses.items():
            if math.isfinite(value):
                training.losses.setdefault(name, []).append((step, value))
        if math.isfinite(score):
            training.tuning.append((step, score))
    for training in trainings.values():
        training.losses = {name: _thin_line(line) for name, line in training.losses.items()}
    return [training for training in trainings.values() if training.losses]


def _thin_line(line: Line) -> Line:
    """Average over as many steps as leave `_MOST` points, each placed at the last of its steps."""
    size = math.ceil(len(line) / _MOST)
    parts = (line[start : start + size] for start in range(0, len(line), size))
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def _describe_curves(training: Training) -> str:
    falls = [
        f"{name} from {numbers.significant(line[0][1])} to {numbers.significant(line[-1][1])}"
        for name, line in training.losses.items()
    ]
    score = f"; tuning score {numbers.points(training.tuning[-1][1])} at the end" if training.tuning else ""
    steps = max(line[-1][0] for line in training.losses.values())
    return f"{training.model}, seed {training.seed}, {steps:,} steps: {', '.join(falls)}{score}."


def _chart_row(model: str, trainings: Sequence[Training]) -> dict[str, Any]:
    losses = [
        {"step": step, "value": value, "term": name, "seed": training.seed}
        for training in trainings
        for name, line in training.losses.items()
        for step, value in line
    ]
    scores = [
        {"step": step, "value": value, "seed": training.seed}
        for training in trainings
        for step, value in training.tuning
    ]
    terms = list(dict.fromkeys(row["term"] for row in losses))
    columns = max(1, int(WIDTH / (max(map(len, terms)) * CHARACTER + 60)))
    legend = {"title": None, "orient": "bottom", "columns": columns, "columnPadding": 40, "labelLimit": 0}
    scale = {"domain": terms, "range": [COLOURS[place % len(COLOURS)] for place in range(len(terms))]}
    left = _line_chart(losses, f"{model}: loss terms, weighted", "Loss")
    left["encoding"]["color"] = channel("term:N", scale=scale, legend=legend)
    if not scores:
        return left
    right = _line_chart(scores, f"{model}: tuning split", "Score, points", point=len(scores) < _MOST)
    return charts_beside(left, right, spacing=50)


def _line_chart(rows: Sequence[Mapping[str, Any]], title: str, name: str, *, point: bool = False) -> dict[str, Any]:
    values = [row["value"] for row in rows]
    logarithmic = name == "Loss" and min(values) > 0 and max(values) / min(values) > _SPAN
    scale = {"type": "log"} if logarithmic else {"zero": False}
    axis = {"tickCount": 4, "format": "~g"} if logarithmic else {"tickCount": 5}
    steps = {"axis": {"tickCount": 4, "grid": False}, "scale": {"zero": True, "nice": False}}
    encoding = {
        "x": channel("step:Q", title="Optimizer step", **steps),
        "y": channel("value:Q", title=name, scale=scale, axis=axis),
        "detail": channel("seed:N"),
    }
    dot = {"aria": False, "size": 20, "fill": COLOURS[0], "stroke": COLOURS[0]} if point else False
    lines = mark("line", rows, encoding, strokeWidth=1.5, color=COLOURS[0], opacity=0.85, aria=False, point=dot)
    return {**lines, "width": WIDTH, "height": HEIGHT, "title": heading(title, [], WIDTH)}
