"""How often models were timed, as shown in a report's details."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compress.report.page import tasks_of
from compress.report.sections.details import details
from compress.results import Result, Runtime


def latency_of(result: Result) -> str:
    (task,) = tasks_of([result])
    (detail,) = details(task)
    return dict(detail.facts)["Latency"]


def changed(result: Result, changes: Callable[[tuple[int, int]], dict[str, Any]]) -> Result:
    """Change fields of every row of every model, by its shape."""

    def timed(runtime: Runtime | None) -> Runtime | None:
        if runtime is None:
            return None
        rows = [row.model_copy(update=changes((row.batch, row.length))) for row in runtime.latency]
        return runtime.model_copy(update={"latency": tuple(rows)})

    models = [
        model.model_copy(update={"onnx": timed(model.onnx), "torch_eager": timed(model.torch_eager)})
        for model in result.models
    ]
    return result.model_copy(update={"models": tuple(models)})


def test_runs_are_those_that_were_made(fake: Callable[..., Result]) -> None:
    result = fake()
    assert latency_of(result) == "runs 30, warmup 5, threads 1"  # older results have no half-widths
    widths = {(1, 32): 0.012, (1, 128): 0.049, (32, 128): 0.03, (0, 0): 0.3}
    early = changed(result, lambda shape: {"runs": 6 if shape[0] else 64, "half_width": widths[shape]})
    assert latency_of(early) == "runs 6 to 64 (p50 of shapes known to ±4.9% or less), warmup 5, threads 1"
    few = changed(early, lambda shape: {"runs": 3, "half_width": None} if shape == (32, 128) else {})
    assert latency_of(few) == "runs 3 to 64, warmup 5, threads 1"  # three rounds give no half-width


def test_runs_that_were_asked_for_stand_where_none_was_timed(fake: Callable[..., Result]) -> None:
    result = fake()
    models = [model.model_copy(update={"onnx": None, "torch_eager": None}) for model in result.models]
    assert latency_of(result.model_copy(update={"models": tuple(models)})) == "runs 30, warmup 5, threads 1"
